/** Families that cannot be asked for, or are not there, when the real program starts. */
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { useLab } from '../lab/requireLab.ts';
import { FLAGS } from './daemon.ts';
import { applied } from './support/applied.ts';
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

  const ABSENT = `echo "ip6tables v1.8.9 (legacy): can't initialize ip6tables table \\\`nat': Table does not exist" >&2
exit 3`;

  /** Programs of these names that do what the script says; asked for its version, each has one. */
  async function withPrograms(script: string, names: readonly string[]) {
    const folder = join(directory, 'bin');
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder);
    for (const name of names) {
      const version = `case "$*" in *--version*) echo '${name} v1.8.9 (legacy)'; exit 0;; esac`;
      await writeFile(join(folder, name), `#!/bin/sh\n${version}\n${script}\n`);
      await chmod(join(folder, name), 0o755);
    }
    return { folder, env: { PATH: `${folder}:${process.env['PATH']}` } };
  }

  test('serves the other family where one is not there, shows it in /healthz, and serves it once it is there', async () => {
    const node = lab().host('node1');
    const { folder, env } = await withPrograms(ABSENT, ['ip6tables-legacy']);
    const socket = join(directory, 'junction.sock');
    await writeFile(socket, 'precious');
    const program = Program.start(node, flags(`--api-socket=${socket}`), { env });
    await program.says(/left out for now" ipFamily="IPv6" reason=".*Table does not exist/);
    await program.says('"Serving" ipFamily="IPv4"');
    const health: unknown = JSON.parse(await node.run(['curl', '-s', 'http://127.0.0.1:10256/healthz']));
    expect(health).toMatchObject({
      healthy: true,
      leftOut: { IPv6: { reason: expect.stringContaining('Table does not exist') } },
    });
    expect(health).not.toHaveProperty('status.IPv6');
    // A file that is no socket is not replaced.
    await program.says(/Cannot listen for questions; serving without.*exists and is no socket/);
    expect(await readFile(socket, 'utf8')).toBe('precious');

    await rm(socket);
    await rm(folder, { recursive: true });
    await program.says('This family can be served now');
    await program.says('"Serving" ipFamily="IPv6"');
    expect((await applied(socket)).leftOut).toEqual([]);
    await program.end('SIGTERM');
  });

  test.each([
    [
      'the primary family is not there',
      ['--bind-address=fd00:100::2'],
      () => withPrograms(ABSENT, ['ip6tables-legacy']),
      /no support for primary IP family .*IPv6.*Table does not exist/,
    ],
    [
      'neither family is there',
      [],
      () => withPrograms(ABSENT, ['iptables-legacy', 'ip6tables-legacy']),
      /iptables is not available on this host: .*Table does not exist/,
    ],
    [
      'no place for a lock file helps',
      [],
      () =>
        withPrograms(
          `echo "Fatal: can't open lock file /run/xtables.lock: Read-only file system" >&2; exit 4`,
          ['iptables-legacy', 'ip6tables-legacy'],
        ),
      /can't open lock file \/run\/xtables.lock: Read-only file system.*Mount \/run\/xtables.lock/,
    ],
  ])('ends where %s', async (_, more, make, says) => {
    const { env } = await make();
    const program = Program.start(lab().host('node1'), flags(...more), { env });
    expect(await program.ended()).toBe(1);
    expect(program.log).toMatch(says);
    expect(program.log).not.toContain('"Serving"');
  });
});
