/** Families that cannot be asked for, or are not there, when the real program starts. */
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { useLab } from '../lab/requireLab.ts';
import { FLAGS } from './daemon.ts';
import { eventually } from './support/eventually.ts';
import { PROGRAM, Program } from './support/program.ts';
import { manifests } from './cluster.ts';

const WORLD = manifests([{ name: 'api', ip: '10.96.1.1', ip6: 'fd00:96::1', pods: 'ac' }]);

describe('a start with the legacy variant', () => {
  const lab = useLab();
  let directory = '';
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'junction-e2e-'));
    await mkdir(join(directory, 'manifests'));
    await writeFile(join(directory, 'manifests', 'cluster.yaml'), WORLD);
  });
  afterAll(() => rm(directory, { recursive: true }));

  const flags = (...more: readonly string[]): readonly string[] => [
    'run',
    `--manifests=${join(directory, 'manifests')}`,
    ...FLAGS,
    '--iptables-variant=legacy',
    ...more,
  ];

  /** Settings and rules; a legacy table that was looked at is there, and empty. */
  function kernel(): Promise<string> {
    const script = `cat /proc/sys/net/ipv4/conf/all/route_localnet /proc/sys/net/netfilter/nf_conntrack_tcp_timeout_*
iptables-legacy-save | grep -v '^[#:]'; ip6tables-legacy-save | grep -v '^[#:]'; nft -s list ruleset`;
    return lab().host('node1').run(['sh', '-c', script]);
  }

  test('waits for a lock that is held for long; SIGTERM ends that at once and leaves nothing', async () => {
    const node = lab().host('node1');
    const lock = join(directory, 'xtables.lock');
    const env = { XTABLES_LOCKFILE: lock };
    await node.run(['sh', '-c', 'iptables-legacy-save -t nat; ip6tables-legacy-save -t nat']);
    const before = await kernel();
    const holder = node.spawn(['flock', '--no-fork', lock, 'sleep', '3600'], { stdio: 'ignore' });
    const isHeld = async (): Promise<boolean> =>
      (await node.exec(['flock', '--nonblock', lock, 'true'])).exitCode !== 0;
    await eventually('the lock is held', isHeld);
    const first = Program.start(node, flags(), { env });
    await first.says('"Could not list the nat table; retrying" ipFamily="IPv4"');
    await first.says(/is held by pid \d+ \(sleep\)/);
    expect(await first.end('SIGTERM')).toBe(0);
    expect(first.log).toContain('Stopped during the start; no rules were written');
    expect(await kernel()).toBe(before);

    const second = Program.start(node, flags(), { env });
    await second.says('"Could not list the nat table; retrying" ipFamily="IPv4"');
    holder.kill('SIGKILL');
    await second.serves();
    expect(await second.end('SIGTERM')).toBe(0);
  });

  test('works where /run cannot be written, and says what that means', async () => {
    const mounts = 'mount -t tmpfs -o ro tmpfs /run && exec "$@"';
    const program = Program.start(lab().host('node1'), flags(), {
      before: ['unshare', '--mount', '--', 'sh', '-c', mounts, 'sh'],
      program: [process.execPath, PROGRAM],
    });
    await program.says(
      /xtables lock cannot be used; going on.*lock file \/run\/xtables\.lock: Read-only file system/,
    );
    await program.serves();
    expect(program.log).not.toContain('undefined');
    await program.end('SIGTERM');
  });

  /** An ip6tables whose kernel has no nat table. */
  async function withoutIpv6(): Promise<Readonly<Record<string, string>>> {
    const folder = join(directory, 'bin');
    await mkdir(folder, { recursive: true });
    const path = join(folder, 'ip6tables-legacy');
    await writeFile(
      path,
      `#!/bin/sh
case "$*" in *--version*) echo 'ip6tables v1.8.9 (legacy)'; exit 0;; esac
echo "ip6tables v1.8.9 (legacy): can't initialize ip6tables table \\\`nat': Table does not exist" >&2
exit 3
`,
    );
    await chmod(path, 0o755);
    return { PATH: `${folder}:${process.env['PATH']}` };
  }

  test('serves the other family where one is not there, and shows it in /healthz', async () => {
    const node = lab().host('node1');
    const program = Program.start(node, flags(), { env: await withoutIpv6() });
    await program.says(/left out for now" ipFamily="IPv6" reason=".*Table does not exist/);
    await program.says('"Serving" ipFamily="IPv4"');
    const health: unknown = JSON.parse(await node.run(['curl', '-s', 'http://127.0.0.1:10256/healthz']));
    expect(health).toMatchObject({
      healthy: true,
      leftOut: { IPv6: { reason: expect.stringContaining('Table does not exist') } },
    });
    expect(health).not.toHaveProperty('status.IPv6');
    await program.end('SIGTERM');
  });

  test('ends where the primary family is not there', async () => {
    const env = await withoutIpv6();
    const program = Program.start(lab().host('node1'), flags('--bind-address=fd00:100::2'), { env });
    expect(await program.ended()).toBe(1);
    expect(program.log).toMatch(/no support for primary IP family .*IPv6.*Table does not exist/);
    expect(program.log).not.toContain('"Serving"');
  });
});
