/** Against a real dbus-daemon. */
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { FirewalldListener } from '../../src/system/firewalld.ts';
import { FakeClock } from '../time/fakeClock.ts';
import { bundle } from './support/bundle.ts';
import { FakeFirewalld, MessageBus, requireDbus } from './support/messageBus.ts';

const LISTENING = 'Listening for reloads of firewalld';
const LOST = 'No D-Bus system bus';

let bus: MessageBus;
let clock: FakeClock;
let reloads: string[];
let logged: string[];

beforeEach(async (context) => {
  requireDbus(context);
  bus = new MessageBus();
  await bus.start();
  onTestFinished(() => bus.close());
  [clock, reloads, logged] = [new FakeClock(), [], []];
});

function createListener(busAddress = `tcp:host=localhost;unix:guid=1,path=${bus.path}`): FirewalldListener {
  const listener = new FirewalldListener({
    busAddress,
    clock,
    onReload: (why) => reloads.push(why),
    log: {
      verbose: (_, message, fields: Readonly<Record<string, unknown>> = {}) =>
        logged.push('err' in fields ? `${message}: ${String(fields['err'])}` : message),
    },
  });
  onTestFinished(() => listener.stop());
  return listener;
}

async function startListening(): Promise<FirewalldListener> {
  const listener = createListener();
  await listener.start();
  expect(logged.splice(0)).toEqual([LISTENING]);
  return listener;
}

async function startFirewalld(
  options?: Readonly<{ named?: boolean; slow?: boolean }>,
): Promise<FakeFirewalld> {
  const firewalld = await FakeFirewalld.start(bus, options);
  onTestFinished(() => firewalld.stop());
  return firewalld;
}

describe('firewalld', () => {
  it.each<[what: string, happens: (firewalld: FakeFirewalld) => unknown]>([
    ['has started when it answers', (firewalld) => firewalld.answer()],
    ['that dies while it starts has started', (firewalld) => firewalld.stop()],
    ['that does not answer has started after 25 s', () => clock.advance(25_000)],
  ])('%s', async (_, happens) => {
    await startListening();
    const firewalld = await startFirewalld({ slow: true });
    await expect.poll(() => firewalld.questions).toBe(1);
    expect(reloads).toEqual([]);
    await happens(firewalld);
    await expect.poll(() => reloads).toEqual(['firewalld started']);
  });

  it('is heard when it reloads and when it is replaced, not when it ends; no other program is', async () => {
    const firewalld = await startFirewalld();
    await startListening();
    firewalld.reloaded();
    firewalld.reloaded();
    const twice = ['firewalld reloaded', 'firewalld reloaded'];
    await expect.poll(() => reloads).toEqual(twice);
    firewalld.stop();
    const next = await startFirewalld({ named: false });
    next.reloaded(); // not yet firewalld, to every program and to us
    for (let number = 0; number < 20; number++) next.reloaded(`:1.${number}`);
    await next.takeName();
    await expect.poll(() => reloads).toEqual([...twice, 'firewalld started']);
    next.reloaded();
    await expect.poll(() => reloads).toHaveLength(4);
  });
});

describe('a bus', () => {
  it('that comes later, or restarts, is found, and everything is written once', async () => {
    await bus.stop();
    const listener = createListener();
    await listener.start();
    expect(clock.pending).toBe(1);
    for (const times of [1, 2]) {
      await expect.poll(() => logged).toEqual([expect.stringContaining(LOST)]);
      await clock.advance(10_000);
      await expect.poll(() => clock.soonest - clock.now()).toBe(10_000);
      await bus.start();
      await clock.advance(10_000);
      await expect.poll(() => reloads).toEqual(Array.from({ length: times }, () => 'missed signals'));
      expect(logged.splice(0).slice(1)).toEqual([LISTENING]);
      await bus.stop();
    }
    await expect.poll(() => logged).toHaveLength(1);
    listener.stop();
    expect(clock.pending).toBe(0);
  });

  it.each([
    ['refuses us', 'REJECTED EXTERNAL\r\n', 'the bus refused us: REJECTED EXTERNAL'],
    ['sends something else', `OK 1\r\n${'GET / HTTP/1.1'.padEnd(100)}`, 'the bus sent no D-Bus message'],
    [
      'sends a message without end',
      `OK 1\r\nl\u0004\0\u0001${'\x7f'.repeat(12)}`,
      'the bus sent a message of',
    ],
    ['closes', '', 'the bus closed the connection'],
    ['says nothing', undefined, 'no answer within 25 s'],
  ])('that %s is tried again later', async (_, answer, reason) => {
    const path = join(bus.directory, 'broken');
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      if (answer !== undefined) socket.end(answer, 'latin1');
    }).listen(path);
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const started = createListener(`unix:path=${path}`).start();
    if (answer === undefined) await clock.advance(25_000);
    await started;
    expect(logged).toEqual([expect.stringContaining(`${LOST}: Error: ${reason}`)]);
    expect(clock.pending).toBe(1);
    expect(reloads).toEqual([]);
  });

  /** As a container with user namespaces has it: we are nobody to ourselves, and somebody to the bus. */
  it('knows us in a user namespace, where our own number means nothing', async (context) => {
    if (spawnSync('unshare', ['--user', 'true']).status !== 0)
      context.skip('no user namespace can be made here');
    const script = await bundle(
      'firewalld',
      `import { FirewalldListener } from './src/system/firewalld.ts';
       const verbose = (_, message) => { console.log(message, process.getuid()); listener.stop(); };
       const listener = new FirewalldListener({ log: { verbose }, onReload: () => undefined, busAddress: process.argv[2] });
       await listener.start();`,
    );
    const { stdout } = spawnSync('unshare', ['--user', process.execPath, script, `unix:path=${bus.path}`], {
      encoding: 'utf8',
    });
    expect(stdout).toBe(`${LISTENING} 65534\n`);
  });
});
