/** `junction cleanup` of tables that an nftables mode left, in a real kernel. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { RunResult } from '../../src/system/processes.ts';
import { JUNCTION } from '../support/programs.ts';
import { inside, output } from '../system/support/inside.ts';
import { type Namespace, openNamespace, requireNamespaces } from '../system/support/namespace.ts';

const FOREIGN = 'table ip mine {\n\tchain services {\n\t}\n}\ntable inet junction {\n}\n';
const LEFT = `
table ip junction {
  set cluster-ips { type ipv4_addr; elements = { 10.96.0.1 }; }
  chain prerouting { type nat hook prerouting priority dstnat; policy accept; ip daddr @cluster-ips reject; }
}
table ip6 junction {
}
table ip6 kube-proxy {
  chain services {
  }
}
`;

const RUNNING = 'A Junction is running here, and its tables are its own: stop it first.';

describe('tables of nftables', () => {
  let namespace: Namespace;
  beforeEach(async (context) => {
    requireNamespaces(context);
    namespace = await openNamespace();
    await namespace.runner(['nft', '-f', '-'], { stdin: FOREIGN + LEFT });
  });
  afterEach(() => namespace.close());

  const junction = (...args: readonly string[]): Promise<RunResult> =>
    namespace.runner([process.execPath, JUNCTION, ...args]);
  const ruleset = (): Promise<string> => output(namespace, 'nft', 'list', 'ruleset');

  test.each([['cleanup'], ['--cleanup']])("%s removes ours and kube-proxy's, and no others", async (word) => {
    const { code, stdout } = await junction(word);
    expect(stdout.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
      ['Removed of nftables:'],
      ['FAMILY', 'TABLE', 'SETS, MAPS AND CHAINS'],
      ['ip', 'junction', '2'],
      ['ip6', 'junction', '0'],
      ['ip6', 'kube-proxy', '1'],
      [''],
    ]);
    expect(code).toBe(0);
    expect(await ruleset()).toBe(FOREIGN);
    expect(await junction(word)).toMatchObject({ code: 0, stdout: 'Nothing of ours was there.\n' });
  });

  test('--mode nftables leaves what kube-proxy runs with: its table, and chains of iptables', async () => {
    await namespace.runner(['iptables', '-t', 'nat', '-N', 'KUBE-SERVICES']);
    const { code, stdout } = await junction('cleanup', '--mode', 'nftables');
    expect(code).toBe(0);
    expect(stdout).toContain('junction');
    expect(stdout).not.toContain('kube-proxy');
    const left = await ruleset();
    expect(left).not.toMatch(/table ip6? junction/);
    expect(left).toContain('table ip6 kube-proxy');
    expect(left).toContain('KUBE-SERVICES');
  });

  test('--mode iptables leaves all tables but its own chains', async () => {
    await namespace.runner(['iptables', '-t', 'nat', '-N', 'KUBE-SERVICES']);
    const { code } = await junction('cleanup', '--mode', 'iptables');
    expect(code).toBe(0);
    const left = await ruleset();
    expect(left).not.toContain('KUBE-SERVICES');
    expect(left).toContain('table ip junction');
    expect(left).toContain('table ip6 kube-proxy');
  });

  test('a dry run says what would go', async () => {
    const before = await ruleset();
    const { code, stdout } = await junction('cleanup', '--dry-run');
    expect({ code, title: stdout.split('\n')[0] }).toEqual({ code: 0, title: 'Would remove of nftables:' });
    expect(await ruleset()).toBe(before);
  });

  test('one family alone, as JSON', async () => {
    const { stdout } = await junction('cleanup', '--family=ipv6', '--output=json');
    const { nftables } = JSON.parse(stdout) as { readonly nftables: unknown };
    expect(nftables).toEqual({
      tables: [
        { family: 'ip6', table: 'junction', objects: 0 },
        { family: 'ip6', table: 'kube-proxy', objects: 1 },
      ],
      failures: [],
      junctionIsRunning: false,
    });
    expect(await ruleset()).toContain('table ip junction');
  });

  test('what a check left that was killed', async () => {
    await output(namespace, 'nft', 'add table ip junction-trial');
    expect((await junction('cleanup')).stdout).toMatch(/^ip {2,}junction-trial {2,}0$/m);
    expect(await ruleset()).toBe(FOREIGN);
  });

  test.each([
    ['', 'ip', true, 1],
    ['--dry-run', 'ip6', true, 0],
    ['--family=ipv4', 'ip6', false, 0],
  ])('beside a Junction that runs: %s, its table in %s', async (flags, family, isSaid, code) => {
    const found = await inside(
      namespace,
      'running',
      `import { spawnSync } from 'node:child_process';
       import { directChannel } from './test/netlink/support/directChannel.ts';
       import { transaction } from './src/netlink/nftables/transaction.ts';
       import { NETLINK_NETFILTER, NetlinkSocket } from './src/netlink/socket.ts';
       const socket = NetlinkSocket.open(NETLINK_NETFILTER);
       const place = { family: '${family}', table: 'junction-b' };
       await directChannel(socket).commit(transaction([{ kind: 'addTable', ...place, isOwned: true, isPersistent: true }]));
       const argv = ${JSON.stringify([JUNCTION, 'cleanup', ...(flags === '' ? [] : [flags])])};
       const { status, stdout } = spawnSync(process.execPath, argv, { encoding: 'utf8' });
       console.log(JSON.stringify({ status, lines: stdout.trimEnd().split('\\n') }));`,
    );
    const { status, lines } = found as { readonly status: number; readonly lines: readonly string[] };
    expect({ status, isSaid: lines.at(-1) === RUNNING }).toEqual({ status: code, isSaid });
    expect(lines.join('\n')).not.toContain('junction-b');
  });
});
