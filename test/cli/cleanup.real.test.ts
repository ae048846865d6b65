/** `junction cleanup` of tables that an nftables mode left, in a real kernel. */
import { rm } from 'node:fs/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { RunResult } from '../../src/kernel/process.ts';
import { buildProgram } from '../kernel/preflight/program.ts';
import { output } from '../kernel/support/inside.ts';
import { type Namespace, openNamespace, requireNamespaces } from '../kernel/support/namespace.ts';

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

describe('tables of nftables', () => {
  let script = '';
  let namespace: Namespace;
  beforeAll(async () => {
    script = await buildProgram('cleanup');
  });
  afterAll(() => rm(script));
  beforeEach(async (context) => {
    requireNamespaces(context);
    namespace = await openNamespace();
    await namespace.runner(['nft', '-f', '-'], { stdin: FOREIGN + LEFT });
  });
  afterEach(() => namespace.close());

  const junction = (...args: readonly string[]): Promise<RunResult> =>
    namespace.runner([process.execPath, script, ...args]);
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
    });
    expect(await ruleset()).toContain('table ip junction');
  });

  test('what a check left that was killed', async () => {
    await output(namespace, 'nft', 'add table ip junction-trial');
    expect((await junction('cleanup')).stdout).toMatch(/^ip {2,}junction-trial {2,}0$/m);
    expect(await ruleset()).toBe(FOREIGN);
  });
});
