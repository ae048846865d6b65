import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { AgentProcess } from '../../lab/agentProcess.ts';
import { Lab } from '../../lab/lab.ts';
import { TOOL_PATH } from '../../lab/tools.ts';
import { HOST_NAMES } from '../../lab/topology.ts';
import { attempt } from '../../src/errors.ts';
import { copyOwner, firstLine, startProgram } from './program.ts';
import { requireLab } from './requireLab.ts';

beforeEach((context) => requireLab(context));

test('nothing remains after close, and nothing was made in the machine’s own network', async () => {
  const before = machineNetwork();
  const lab = await Lab.start();
  const networks = HOST_NAMES.map((name) => networkOf(lab.host(name).pid));
  const spawned = lab.host('node1').spawn(['sleep', '600'], { stdio: 'ignore' });
  const pids = [...HOST_NAMES.map((name) => lab.host(name).pid), spawned.pid ?? 0];
  const link = await watchNetwork(lab.host('node1').pid);
  expect(await link.exists()).toBe(true);
  expect(machineNetwork()).toBe(before);

  await lab.close();
  expect(pids.filter(isAlive)).toEqual([]);
  expect(processesIn(networks)).toEqual([]);
  await eventually(async () => expect(await link.exists()).toBe(false));
  await expect(lab.host('pod-a').request('tcp', '10.244.1.12', 8080)).rejects.toThrow(/has ended/);
});

test('nothing remains after the owner is killed with kill -9', async () => {
  const before = machineNetwork();
  const built = copyOwner();
  onTestFinished(() => built.remove());
  const owner = startProgram([process.execPath, built.file, 'wait']);
  onTestFinished(() => void owner.kill('SIGKILL'));
  const made = JSON.parse(await firstLine(owner)) as { hosts: readonly number[]; spawned: number };
  const pids = [...made.hosts, made.spawned];
  const networks = made.hosts.map(networkOf);
  expect(pids.filter(isAlive)).toEqual(pids);
  // 7 agents, `sleep` in node1, and `sh`, `sleep`, `cat` in pod-a
  await eventually(async () => expect(processesIn(networks)).toHaveLength(11));
  const link = await watchNetwork(made.hosts[0] ?? 0);

  owner.kill('SIGKILL');
  await eventually(async () => {
    expect(pids.filter(isAlive)).toEqual([]);
    expect(processesIn(networks)).toEqual([]);
    expect(await link.exists()).toBe(false);
  });
  expect(machineNetwork()).toBe(before);
});

test('a host whose agent was killed says so, and the rest still closes', async () => {
  const lab = await Lab.start();
  const { pid } = lab.host('pod-b');
  process.kill(pid, 'SIGKILL');
  await eventually(async () => expect(isAlive(pid)).toBe(false));
  await expect(lab.host('pod-b').exec(['true'])).rejects.toThrow('the agent of pod-b has ended');
  await lab.close();
});

/**
 * Namespaces without names cannot be listed, so one end of a link goes into the network in question and the other
 * stays with an observer: the kernel removes both when the network goes.
 */
async function watchNetwork(pid: number): Promise<{ exists(): Promise<boolean> }> {
  const observer = await AgentProcess.start('observer');
  onTestFinished(() => observer.close());
  const ip = (...args: readonly string[]) =>
    observer
      .call('exec', { argv: ['ip', ...args], timeoutMs: 50_000 })
      .then(({ exitCode }) => exitCode === 0);
  expect(await ip('link', 'add', 'watch0', 'type', 'veth', 'peer', 'name', 'watch1', 'netns', `${pid}`)).toBe(
    true,
  );
  return { exists: () => ip('link', 'show', 'watch0') };
}

function machineNetwork(): string {
  return execFileSync('ip', ['-oneline', '-details', 'link'], {
    encoding: 'utf8',
    env: { ...process.env, PATH: TOOL_PATH },
  });
}

function networkOf(pid: number): string {
  return readlinkSync(`/proc/${pid}/ns/net`);
}

function processesIn(networks: readonly string[]): readonly number[] {
  const found = readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .map(Number);
  // One may end while we look.
  return found.filter((pid) => networks.includes(attempt(() => networkOf(pid)) ?? ''));
}

/** A process whose parent does not collect it stays as a zombie, which holds nothing. */
function isAlive(pid: number): boolean {
  return attempt(() => !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))) ?? false;
}

async function eventually(check: () => Promise<void>): Promise<void> {
  await expect
    .poll(
      () =>
        check().then(
          () => 'true',
          (error: unknown) => String(error),
        ),
      { timeout: 150_000, interval: 25 },
    )
    .toBe('true');
}
