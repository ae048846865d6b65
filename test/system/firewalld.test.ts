/** Against a real dbus-daemon. */
import { spawnSync } from 'node:child_process';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FirewalldListener } from '../../src/system/firewalld.ts';
import { FakeClock } from '../time/fakeClock.ts';
import { bundle } from './support/bundle.ts';
import { FakeFirewalld, MessageBus, requireDbus } from './support/messageBus.ts';

let bus: MessageBus;
let clock: FakeClock;
let reloads: string[];
let logged: string[];
let listener: FirewalldListener;
const peers: { stop(): void }[] = [];

beforeEach(async (context) => {
  requireDbus(context);
  bus = new MessageBus();
  await bus.start();
  clock = new FakeClock();
  reloads = [];
  logged = [];
  listener = new FirewalldListener({
    busAddress: `tcp:host=localhost;unix:path=/nosuch/bus;unix:guid=1,path=${bus.path}`,
    clock,
    onReload: (why) => reloads.push(why),
    log: { verbose: (level, message) => logged.push(`V${level} ${message}`) },
  });
});

afterEach(async () => {
  listener?.stop();
  for (const peer of peers.splice(0)) peer.stop();
  await bus?.close();
});

async function startFirewalld(options?: {
  readonly named?: boolean;
  readonly slow?: boolean;
}): Promise<FakeFirewalld> {
  const firewalld = await FakeFirewalld.start(bus, options);
  peers.push(firewalld);
  return firewalld;
}

const LISTENING = 'V1 Listening for reloads of firewalld';
const LOST = 'V1 No D-Bus system bus';

async function startListening(): Promise<void> {
  logged.length = 0;
  await listener.start();
  expect(logged).toEqual([LISTENING]);
}

/** What was sent before has arrived: a signal of firewalld goes after it. */
async function passed(firewalld: FakeFirewalld): Promise<void> {
  const before = reloads.length;
  firewalld.reloaded();
  await expect.poll(() => reloads.length).toBeGreaterThan(before);
}

async function uniqueNames({ peer }: FakeFirewalld): Promise<readonly string[]> {
  const names: string[] = [];
  for (let number = 0; number < 20; number++) {
    const name = `:1.${number}`;
    if ((await peer.askBus('NameHasOwner', name))[0] === 1) names.push(name);
  }
  return names;
}

describe('firewalld', () => {
  it('is heard when it reloads', async () => {
    const firewalld = await startFirewalld();
    await startListening();
    expect(reloads).toEqual([]); // it ran before us
    firewalld.reloaded();
    firewalld.reloaded();
    await expect.poll(() => reloads).toEqual(['firewalld reloaded', 'firewalld reloaded']);
  });

  it('is heard when it starts, but only when it has flushed the rules and answers', async () => {
    await startListening();
    const firewalld = await startFirewalld({ slow: true });
    await expect.poll(() => firewalld.questions).toBe(1);
    expect(reloads).toEqual([]);
    firewalld.answer();
    await expect.poll(() => reloads).toEqual(['firewalld started']);
    firewalld.reloaded();
    await expect.poll(() => reloads).toHaveLength(2);
  });

  it('that ends takes no rules with it', async () => {
    const firewalld = await startFirewalld();
    await startListening();
    firewalld.stop();
    const next = await startFirewalld({ named: false });
    await next.takeName();
    await expect.poll(() => reloads).toEqual(['firewalld started']);
    await passed(next);
    expect(reloads).toEqual(['firewalld started', 'firewalld reloaded']);
  });

  it('that dies while it starts is written for all the same', async () => {
    await startListening();
    const firewalld = await startFirewalld({ slow: true });
    await expect.poll(() => firewalld.questions).toBe(1);
    firewalld.stop();
    await expect.poll(() => reloads).toEqual(['firewalld started']);
  });

  it('that does not answer is not waited for without end', async () => {
    await startListening();
    const firewalld = await startFirewalld({ slow: true });
    await expect.poll(() => firewalld.questions).toBe(1);
    await clock.advance(25_000);
    expect(reloads).toEqual(['firewalld started']);
  });

  it('is not whoever says so, to everybody or to us alone', async () => {
    const firewalld = await startFirewalld();
    await startListening();
    const impostor = await startFirewalld({ named: false });
    impostor.reloaded();
    for (const name of await uniqueNames(impostor)) impostor.reloaded(name);
    await impostor.peer.askBus('GetId');
    await passed(firewalld);
    expect(reloads).toEqual(['firewalld reloaded']);
  });

  it('is no longer heard after stop', async () => {
    const firewalld = await startFirewalld();
    await startListening();
    listener.stop();
    firewalld.reloaded();
    await firewalld.peer.askBus('GetId');
    expect(clock.pending).toBe(0);
    await startListening();
    await passed(firewalld);
    expect(reloads).toEqual(['firewalld reloaded']);
  });
});

describe('a bus', () => {
  it('that is not there is no trouble, is told of once, and is looked for less and less often', async () => {
    await bus.stop();
    await listener.start();
    const waits: number[] = [];
    for (let attempt = 0; attempt < 8; attempt++) {
      // The wait for an answer, and then the one until the next attempt.
      await expect.poll(() => clock.soonest - clock.now()).not.toBe(25_000);
      waits.push((clock.soonest - clock.now()) / 1000);
      await clock.advance(clock.soonest - clock.now());
    }
    expect(waits).toEqual([1, 2, 4, 8, 16, 32, 60, 60]);
    expect(logged).toEqual([LOST]);
    expect(reloads).toEqual([]);
  });

  it('that comes later, or restarts, is found, and everything is written once', async () => {
    await bus.stop();
    await listener.start();
    for (const wait of [1000, 2000]) {
      await expect.poll(() => logged).toEqual([LOST]);
      await bus.start();
      await expect.poll(() => clock.soonest - clock.now()).toBe(wait);
      await clock.advance(wait);
      await expect.poll(() => reloads).toEqual(['missed signals']);
      expect(logged.splice(0)).toEqual([LOST, LISTENING]);
      reloads.length = 0;
      await bus.stop();
    }
    await bus.start();
    await clock.advance(4000);
    const firewalld = await startFirewalld();
    await expect.poll(() => reloads).toEqual(['missed signals', 'firewalld started']);
    await passed(firewalld);
  });

  it('that is gone is not looked for after stop', async () => {
    await startListening();
    await bus.stop();
    await expect.poll(() => clock.pending).toBe(1);
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
  ])('that %s is tried again later', async (_, answer, reason) => {
    const path = join(bus.directory, 'broken');
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.end(answer, 'latin1');
    });
    await new Promise<void>((resolve) => server.listen(path, resolve));
    const errors: string[] = [];
    const log = {
      verbose: (_level: number, message: string, fields: Record<string, unknown> = {}) =>
        errors.push(`${message}: ${String(fields.err)}`),
    };
    const broken = new FirewalldListener({
      busAddress: `unix:path=${path}`,
      clock,
      log,
      onReload: (why) => reloads.push(why),
    });
    await broken.start();
    expect(errors.join()).toContain(`No D-Bus system bus: Error: ${reason}`);
    expect(clock.pending).toBe(1);
    broken.stop();
    server.close();
    expect(reloads).toEqual([]);
  });

  it('that accepts and says nothing is given up', async () => {
    const path = join(bus.directory, 'silent');
    const server = createServer(() => undefined);
    await new Promise<void>((resolve) => server.listen(path, resolve));
    const log = { verbose: (_level: number, message: string) => logged.push(message) };
    const busAddress = `unix:path=${path}`;
    const silent = new FirewalldListener({ busAddress, clock, log, onReload: (why) => reloads.push(why) });
    const started = silent.start();
    await clock.advance(25_000);
    await started;
    expect(logged).toEqual(['No D-Bus system bus']);
    silent.stop();
    server.close();
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
    expect(stdout).toBe('Listening for reloads of firewalld 65534\n');
  });
});
