import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../e2e/daemon.ts';
import { requireLab } from '../lab/requireLab.ts';
import { at, listAt, podOf, ROOT, readText, renderObjects } from './chart.ts';

const capabilities = listAt(
  podOf(renderObjects()),
  'containers',
  0,
  'securityContext',
  'capabilities',
  'add',
).map((name) => `+${String(name).toLowerCase()}`);
const onlyThese = (names: readonly string[]): string =>
  `setpriv --no-new-privs --inh-caps=-all --bounding-set=${['-all', ...names].join()}`;

/**
 * What a container runtime makes of the pod: no file can be written but in /run (the checkout may be in /tmp), /proc/sys is read-only, the
 * node's /proc/sys/net is mounted beside it for the init container, and only the pod's capabilities are left.
 */
const POD = `
set -eu
ip link set lo up
mount -t tmpfs tmpfs /run
mkdir -p /run/host/net /run/tmp
export TMPDIR=/run/tmp
mount --bind /proc/sys/net /run/host/net
mount --bind /proc/sys /proc/sys
mount -o remount,bind,ro,nosuid,nodev,noexec /proc/sys
mount -o remount,bind,ro /
SYSCTL_ROOT=/run/host ${onlyThese([])} sh -euc "$INIT_SCRIPT"
exec ${onlyThese(capabilities)} "$@"
`;

/** The pod's containers with the real kernel, in a network namespace that stands for the node. */
describe('the capabilities of the pod are enough', () => {
  beforeEach((context) => requireLab(context));
  let child: ChildProcess | undefined;
  afterEach(async () => {
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    await ended;
  });

  test.each(['nft', 'legacy'])('to serve with the %s variant of iptables', async (variant) => {
    let log = '';
    const program = ['bin/junction', 'run', '--manifests=examples', '--hostname-override=node1'];
    child = spawn(
      'unshare',
      [
        '--net',
        '--mount',
        '--',
        'sh',
        '-c',
        POD,
        'pod',
        process.execPath,
        ...program,
        `--iptables-variant=${variant}`,
      ],
      { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...initEnvironment() } },
    );
    const started = child;
    for (const stream of [started.stdout, started.stderr]) {
      stream?.on('data', (chunk: Buffer) => {
        log += chunk.toString();
      });
    }
    await eventually('serving', () => {
      if (started.exitCode !== null) throw new Error(`it ended:\n${log}`);
      return log.includes('"Serving" ipFamily="IPv4"');
    });
    expect(log).toContain('net/ipv4/conf/all/route_localnet = 1 (was 0)');
    const enter = ['--target', String(started.pid), '--net', '--'];
    const rules = execFileSync('nsenter', [...enter, `iptables-${variant}-save`, '-t', 'nat']);
    expect(rules.toString()).toContain(
      '-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES',
    );
    const status = execFileSync('cat', [`/proc/${String(started.pid)}/status`], { encoding: 'utf8' });
    expect(/CapEff:\s+(\w+)/.exec(status)?.[1]).toBe(maskOf(capabilities));
  });
});

function initEnvironment(): Readonly<Record<string, string>> {
  const env = listAt(podOf(renderObjects()), 'initContainers', 0, 'env');
  return {
    INIT_SCRIPT: readText('deploy/chart/junction/files/set-sysctls.sh'),
    ...Object.fromEntries(env.map((each) => [String(at(each, 'name')), String(at(each, 'value'))])),
  };
}

/** From linux/capability.h. */
const BITS: Readonly<Record<string, number>> = { net_admin: 12, net_raw: 13 };

function maskOf(names: readonly string[]): string {
  const mask = names.reduce((sum, name) => sum + 2 ** (BITS[name.slice(1)] ?? Number.NaN), 0);
  return mask.toString(16).padStart(16, '0');
}
