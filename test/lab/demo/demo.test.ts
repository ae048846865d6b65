import { cpSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { ServiceRow } from '../../../src/explain/types.ts';
import { requireLab } from '../requireLab.ts';
import { edit } from './edit.ts';
import { expectTable } from './table.ts';
import { ROOT } from '../../support/checkout.ts';
import { AS_NOBODY, type BuiltDemo, copyDemo, processesIn, RunningDemo } from './program.ts';

let built: BuiltDemo;
beforeAll(() => {
  built = copyDemo();
});
afterAll(() => built.remove());
beforeEach((context) => requireLab(context));

describe('once', () => {
  test('an ordinary user sees that everything goes as planned, in the nftables mode', async () => {
    const demo = start(['--once', '--mode', 'nftables'], asNobody());
    await expectExit(demo, 0);
    expect(demo.output).toMatch(/All \d+ requests went as planned\./);
    expect(demo.output).not.toContain('The page');
    expectTable(demo.output, '192.168.100.2');
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
  test('the link comes first; an edited example shows in its rows, and on the page; Ctrl-C leaves nothing behind', async () => {
    const temporary = join(built.folder, 'tmp');
    mkdirSync(temporary);
    const demo = start([], [], { TMPDIR: temporary });
    await demo.saying(/\n/);
    await demo.saying(/Ctrl-C: end/);
    expectTable(demo.output, '127.0.0.1');
    expect(demo.output).toContain(`Open ${demo.link}`);
    expect(await (await fetch(`${demo.link}services`)).text()).toContain('<title>');
    const walk = await ask(demo, 'explain?from=outside&to=203.0.113.10:80');
    expect(walk).toMatchObject([{ node: 'node1', kernel: { asPlanned: true } }]);
    expect(await stateOf(demo, 'shop/idle')).toBe('no endpoints');
    const networks = demo.labNetworks();
    expect(networks.size).toBe(7);
    expect(demo.output).toMatch(/nsenter --net=\/proc\/\d+\/ns\/net bash -c .*10\.96\.0\.10/);

    const first = demo.output.length;
    edit(built.examples, 'idle.yaml', (text) => text.replace('ready: false', 'ready: true'));
    await demo.saying(/went as planned\.\n$/, first);
    expect(await stateOf(demo, 'shop/idle')).toBe('ok');
    const change = demo.output.slice(first);
    expect(change).toMatch(
      /Junction wrote IPv4 in .*: EndpointSlice shop\/idle-\S+: endpoint 10\.244\.2\.12 ready$/m,
    );
    expect(change).toMatch(/^✓ {2}pod-b +idle cluster IP +10\.96\.0\.70:80 +pod-d ×12/m);
    expect(change.match(/^[✓✗]/gm)).toHaveLength(1);

    demo.child.kill('SIGINT');
    await expectExit(demo, 0);
    expect(demo.output).toContain('Goodbye');
    expect(demo.processes()).toEqual([]);
    expect(processesIn(networks)).toEqual([]);
    expect(readdirSync(temporary)).toEqual([]);
  });
});

/** Above the demo. Standard input is a pipe: were it /dev/null, npm would count as put into the background. */
test('npm is killed without a word: the lab goes', async () => {
  const demo = new RunningDemo(['sh', '-c', 'npm start; true'], ROOT, { HOME: built.folder });
  onTestFinished(() => void demo.child.kill('SIGKILL'));
  await demo.saying(/Ctrl-C: end/);
  const networks = demo.labNetworks();
  process.kill(demo.processOf(/^npm start|npm-cli\.js start/) ?? 0, 'SIGKILL');
  await expect
    .poll(() => [...demo.processes(), ...processesIn(networks)], { timeout: 150_000, interval: 50 })
    .toEqual([]);
});

async function ask({ link }: RunningDemo, path: string): Promise<unknown> {
  return (await fetch(`${link}v1/${path}`)).json();
}

async function stateOf(demo: RunningDemo, service: string): Promise<string | undefined> {
  const rows = (await ask(demo, `services?service=${service}`)) as readonly ServiceRow[];
  return rows[0]?.state;
}

function start(
  args: readonly string[],
  prefix: readonly string[] = [],
  env: NodeJS.ProcessEnv = {},
): RunningDemo {
  const demo = RunningDemo.start(built, args, prefix, env);
  onTestFinished(() => void demo.child.kill('SIGKILL'));
  return demo;
}

/** `npm test` of an ordinary user runs in a user namespace already, where there is nobody else to become. */
function asNobody(): readonly string[] {
  const uids = readFileSync('/proc/self/uid_map', 'utf8').trim().split(/\s+/);
  return uids[2] === '4294967295' ? AS_NOBODY : [];
}

/** With all that was printed, should the code be another. */
async function expectExit(demo: RunningDemo, code: number): Promise<void> {
  const exitCode = await demo.exited;
  expect({ exitCode, output: demo.output }).toMatchObject({ exitCode: code });
}
