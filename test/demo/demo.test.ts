import { cpSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { requireLab } from '../lab/requireLab.ts';
import { AS_NOBODY, type BuiltDemo, buildDemo, OWN_NETWORK, processesIn, RunningDemo } from './program.ts';

let built: BuiltDemo;
beforeAll(async () => {
  built = await buildDemo();
});
afterAll(() => built.remove());
beforeEach((context) => requireLab(context));

describe('once', () => {
  test.each([
    ['today’s chains', []],
    ['the chains of old', ['--layout', 'classic']],
    ['legacy iptables', ['--variant', 'legacy']],
  ])('shows that everything goes as planned, with %s', async (_, args) => {
    const demo = start(['--once', ...args]);
    await expectExit(demo, 0);
    expect(demo.output).toMatch(/All \d+ requests went as planned\./);
    expectTable(demo.output);
    expect(demo.processes()).toEqual([]);
  });

  test('an ordinary user needs no more than a user namespace', async () => {
    const demo = start(['--once'], asNobody());
    await expectExit(demo, 0);
    expectTable(demo.output);
    expect(demo.processes()).toEqual([]);
  });

  test('an address that does not answer as it should is told, and the exit code says so', async () => {
    const manifests = join(built.folder, 'wrong');
    cpSync(built.examples, manifests, { recursive: true });
    // Nothing listens there: the plan says "forward", the kernel forwards, and the pod refuses.
    edit(manifests, 'api.yaml', (text) => text.replace('port: 8080\nendpoints', 'port: 8088\nendpoints'));
    const demo = start(['--once', '--manifests', manifests]);
    await expectExit(demo, 1);
    expect(demo.output).toMatch(/^✗ {2}pod-b +api cluster IP +10\.96\.0\.10:80 +refused ×12/m);
    expect(demo.output).toContain(
      '✗ pod-b to api cluster IP: expected an answer from 10.244.1.11:8088 or 10.244.2.11:8088',
    );
    expect(demo.output).toContain('4 of 19 rows did not go as planned.');
  });
});

describe('staying', () => {
  test('an edited example shows in the rows that it changes; Ctrl-C leaves nothing behind', async () => {
    const demo = start([]);
    await saying(demo, /Ctrl-C: end/);
    const networks = labNetworks(demo);
    expect(networks.size).toBe(7);
    const ask = /nsenter --net=\/proc\/\d+\/ns\/net bash -c .*10\.96\.0\.10/.exec(demo.output);
    expect(ask).not.toBeNull();

    const first = demo.output.length;
    edit(built.examples, 'idle.yaml', (text) => text.replace('ready: false', 'ready: true'));
    await saying(demo, /went as planned\.\n$/, first);
    const change = demo.output.slice(first);
    expect(change).toContain('Junction wrote IPv4 in ');
    expect(change).toMatch(/^✓ {2}pod-b +idle cluster IP +10\.96\.0\.70:80 +pod-d ×12/m);
    expect(change.match(/^[✓✗]/gm)).toHaveLength(1);

    demo.child.kill('SIGINT');
    await expectExit(demo, 0);
    expect(demo.output).toContain('Goodbye');
    expect(demo.processes()).toEqual([]);
    expect(processesIn(networks)).toEqual([]);
  });

  test('kill -9 leaves nothing behind', async () => {
    const left = await killAndLook(start([]));
    expect(left).toEqual({ processes: [], networks: 7 });
  });

  test('kill -9 leaves nothing behind in a user namespace either', async () => {
    const left = await killAndLook(start([], asNobody()));
    expect(left).toEqual({ processes: [], networks: 7 });
  });

  test('Ctrl-C while the cluster is still starting', async () => {
    const demo = start([]);
    await expect.poll(() => demo.processes().length, { timeout: 150_000, interval: 5 }).toBeGreaterThan(3);
    demo.child.kill('SIGINT');
    await expectExit(demo, 0);
    expect(demo.processes()).toEqual([]);
  });
});

test.each([
  [['--help'], 0, '--once'],
  [['--layout', 'modern'], 2, '--layout "modern" must be one of current, classic'],
  [['--no-such'], 2, "Unknown option '--no-such'"],
])('%j', async (args, code, text) => {
  const demo = start(args);
  await expectExit(demo, code);
  expect(demo.output).toContain(text);
});

function start(args: readonly string[], prefix: readonly string[] = []): RunningDemo {
  const demo = new RunningDemo(built, args, prefix);
  onTestFinished(() => void demo.child.kill('SIGKILL'));
  return demo;
}

function expectTable(output: string): void {
  const rows = [
    /✓ {2}pod-b +api cluster IP +10\.96\.0\.10:80 +pod-.* 10\.244\.1\.12 \(its own\)/,
    /✓ {2}client +shopfront node port +192\.0\.2\.1:30080 +pod-.* \(masqueraded\)/,
    /✓ {2}node1 +shopfront node port +127\.0\.0\.1:30080 +pod-/,
    /✓ {2}client +shopfront external IP +198\.51\.100\.20:80 +pod-.* \(masqueraded\)/,
    /✓ {2}client +web load balancer +203\.0\.113\.10:80 +pod-a ×12 +192\.0\.2\.10 \(its own\)/,
    /✓ {2}far client +web load balancer +203\.0\.113\.10:80 +no answer ×2 +– source not allowed/,
    /✓ {2}pod-b +cart cluster IP +10\.96\.0\.40:80 +pod-[acd] ×12 /,
    /✓ {2}pod-b +dns cluster IP \(UDP\) +10\.96\.0\.53:53 +pod-/,
    /✓ {2}pod-b +catalog cluster IP +\[fd00:96::60\]:80 +pod-/,
    /✓ {2}pod-b +idle cluster IP +10\.96\.0\.70:80 +refused ×12 +– no endpoints/,
  ];
  for (const row of rows) expect(output).toMatch(row);
}

/** How many networks there were, and which processes are left. */
async function killAndLook(demo: RunningDemo): Promise<{ processes: readonly number[]; networks: number }> {
  await saying(demo, /Ctrl-C: end/);
  const networks = labNetworks(demo);
  demo.child.kill('SIGKILL');
  const left = (): readonly number[] => [...demo.processes(), ...processesIn(networks)];
  for (let tries = 0; tries < 4000 && left().length > 0; tries++) await sleep(20);
  return { processes: left(), networks: networks.size };
}

/** `npm test` of an ordinary user runs in a user namespace already, where there is nobody else to become. */
function asNobody(): readonly string[] {
  const uids = readFileSync('/proc/self/uid_map', 'utf8').trim().split(/\s+/);
  return uids[2] === '4294967295' ? AS_NOBODY : [];
}

function labNetworks(demo: RunningDemo): ReadonlySet<string> {
  return new Set([...demo.networks()].filter((network) => network !== '' && network !== OWN_NETWORK));
}

async function saying(demo: RunningDemo, text: RegExp, from = 0): Promise<void> {
  await expect.poll(() => demo.output.slice(from), { timeout: 200_000, interval: 20 }).toMatch(text);
}

/** With all that was printed, should the code be another. */
async function expectExit(demo: RunningDemo, code: number): Promise<void> {
  const exitCode = await demo.exited;
  expect({ exitCode, output: demo.output }).toMatchObject({ exitCode: code });
}

function edit(folder: string, file: string, change: (text: string) => string): void {
  const path = join(folder, file);
  const before = readFileSync(path, 'utf8');
  const after = change(before);
  expect(after).not.toBe(before);
  writeFileSync(`${path}.new`, after);
  renameSync(`${path}.new`, path); // in one go: the demo would see an empty file otherwise
  onTestFinished(() => writeFileSync(path, before));
}
