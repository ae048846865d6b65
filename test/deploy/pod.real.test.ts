import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../e2e/daemon.ts';
import { requireLab } from '../lab/requireLab.ts';
import { merge, REQUIRED, ROOT } from './chart.ts';
import { type PodScript, podScript } from './podScript.ts';

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

  async function serve(
    { script, environment, capabilityMask }: PodScript,
    ...flags: readonly string[]
  ): Promise<{ readonly log: string; readonly inside: (...argv: [string, ...string[]]) => string }> {
    let log = '';
    const program = ['bin/junction', 'run', '--manifests=examples', '--hostname-override=node1', ...flags];
    child = spawn(
      'unshare',
      ['--net', '--mount', '--', 'sh', '-c', script, 'pod', process.execPath, ...program],
      { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...environment } },
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
    const status = execFileSync('cat', [`/proc/${String(started.pid)}/status`], { encoding: 'utf8' });
    expect(/CapEff:\s+(\w+)/.exec(status)?.[1]).toBe(capabilityMask);
    const enter = ['--target', String(started.pid), '--net', '--'];
    return { log, inside: (...argv) => execFileSync('nsenter', [...enter, ...argv], { encoding: 'utf8' }) };
  }

  test.each(['nft', 'legacy'])('to serve with the %s variant of iptables', async (variant) => {
    const { log, inside } = await serve(podScript(), `--iptables-variant=${variant}`);
    expect(log).toMatch(/Setting route_localnet=1[^]*System initialized[^]*"Serving"/);
    expect(inside(`iptables-${variant}-save`, '-t', 'nat')).toContain(
      '-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES',
    );
  });

  test('to serve with the nft variant, with fewer of them where the configuration says so', async () => {
    const pod = podScript(merge(REQUIRED, { junction: { iptablesVariant: 'nft' } }));
    expect(pod.capabilityMask).toBe('0000000000001000');
    const { inside } = await serve(pod, '--iptables-variant=nft');
    expect(inside('iptables-nft-save', '-t', 'nat')).toContain('-j KUBE-SERVICES');
  });

  test('to serve in the nftables mode, with fewer of them', async () => {
    const pod = podScript(merge(REQUIRED, { config: { mode: 'nftables' } }));
    const { log, inside } = await serve(pod, '--proxy-mode=nftables');
    expect(log).not.toContain('Setting route_localnet');
    expect(inside('nft', 'list', 'chain', 'ip', 'junction', 'prerouting')).toContain('jump services');
    expect(inside('nft', 'list', 'map', 'ip', 'junction', 'any-2')).toContain('elements = {');
  });
});
