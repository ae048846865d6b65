/** Against a real dbus-daemon. */
import { spawnSync } from 'node:child_process';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { BUS, DbusConnection } from '../../src/system/dbus/connection.ts';
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
    busPaths: ['/nosuch/bus', bus.path],
    clock,
    onReload: (why) => reloads.push(why),
    log: { info: () => undefined, verbose: (level, message) => logged.push(`V${level} ${message}`) },
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

/** What was sent before has arrived everywhere: a call of our own goes after it. */
async function passed({ connection }: FakeFirewalld): Promise<void> {
  await connection.call({ ...BUS, member: 'GetId' });
  await new Promise((resolve) => {
    setTimeout(resolve, 50);
  });
}

async function uniqueNames({ connection }: FakeFirewalld): Promise<readonly string[]> {
  const names: string[] = [];
  for (let number = 0; number < 20; number++) {
    const name = `:1.${number}`;
    const [has] = await connection.call({ ...BUS, member: 'NameHasOwner', signature: 's', args: [name] });
    if (has === true) names.push(name);
  }
  return names;
}

describe('firewalld', () => {
  it('is heard when it reloads', async () => {
    const firewalld = await startFirewalld();
    await listener.start();
    expect(listener.state).toBe('listening');
    expect(reloads).toEqual([]); // it ran before us
    firewalld.reloaded();
    firewalld.reloaded();
    await expect.poll(() => reloads).toEqual(['firewalld reloaded', 'firewalld reloaded']);
  });

  it('is heard when it starts, but only when it has flushed the rules and answers', async () => {
    await listener.start();
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
    await listener.start();
    firewalld.stop();
    const next = await startFirewalld({ named: false });
    await passed(next);
    expect(reloads).toEqual([]);
    await next.takeName();
    await expect.poll(() => reloads).toEqual(['firewalld started']);
  });

  it('that dies while it starts is written for all the same', async () => {
    await listener.start();
    const firewalld = await startFirewalld({ slow: true });
    await expect.poll(() => firewalld.questions).toBe(1);
    firewalld.stop();
    await expect.poll(() => reloads).toEqual(['firewalld started']);
  });

  it('is not whoever says so, to everybody or to us alone', async () => {
    await startFirewalld();
    await listener.start();
    const impostor = await startFirewalld({ named: false });
    impostor.reloaded();
    for (const name of await uniqueNames(impostor)) impostor.reloaded(name);
    await passed(impostor);
    expect(reloads).toEqual([]);
  });

  it('is no longer heard after stop', async () => {
    const firewalld = await startFirewalld();
    await listener.start();
    listener.stop();
    firewalld.reloaded();
    await passed(firewalld);
    expect(reloads).toEqual([]);
    expect([listener.state, clock.pending]).toEqual(['stopped', 0]);
    await listener.start();
    firewalld.reloaded();
    await expect.poll(() => reloads).toEqual(['firewalld reloaded']);
  });
});

describe('a bus', () => {
  it('that is not there is no trouble, and is told of once', async () => {
    await bus.stop();
    await listener.start();
    expect(listener.state).toBe('absent');
    for (let attempt = 0; attempt < 3; attempt++) {
      await clock.advance(60_000);
      await expect.poll(() => clock.pending).toBe(1);
    }
    expect(logged).toEqual(['V1 Could not connect to D-Bus system bus']);
    expect(reloads).toEqual([]);
  });

  it('that is not there is looked for less and less often', async () => {
    await bus.stop();
    await listener.start();
    const waits: number[] = [];
    for (let attempt = 0; attempt < 8; attempt++) {
      const before = clock.now();
      while (clock.pending > 0) await clock.advance(1000);
      waits.push((clock.now() - before) / 1000);
      await expect.poll(() => clock.pending).toBe(1);
    }
    expect(waits).toEqual([1, 2, 4, 8, 16, 32, 60, 60]);
  });

  it('that comes later is found, and rules are written if firewalld is on it', async () => {
    await bus.stop();
    await listener.start();
    await bus.start();
    await startFirewalld();
    await clock.advance(1000);
    await expect.poll(() => reloads).toEqual(['missed signals']);
    expect(listener.state).toBe('listening');
  });

  it('that restarts is found again; without firewalld nothing is written', async () => {
    await listener.start();
    await bus.stop();
    await expect.poll(() => listener.state).toBe('absent');
    await bus.start();
    await clock.advance(1000);
    await expect.poll(() => listener.state).toBe('listening');
    expect(reloads).toEqual([]);
    await startFirewalld();
    await expect.poll(() => reloads).toEqual(['firewalld started']);
  });

  it('that is gone is not looked for after stop', async () => {
    await listener.start();
    await bus.stop();
    await expect.poll(() => listener.state).toBe('absent');
    listener.stop();
    expect([listener.state, clock.pending]).toEqual(['stopped', 0]);
  });

  it('answers an error to a call that nobody can take', async () => {
    const { connection } = await startFirewalld({ named: false });
    const call = connection.call({ destination: 'no.such.Name', path: '/', interface: 'a.b', member: 'C' });
    await expect(call).rejects.toMatchObject({ errorName: 'org.freedesktop.DBus.Error.NameHasNoOwner' });
  });

  it('does not keep us waiting for one that never answers', async () => {
    const silent = await startFirewalld({ slow: true });
    const { connection } = await startFirewalld({ named: false });
    const call = connection.call(
      {
        destination: 'org.fedoraproject.FirewallD1',
        path: '/',
        interface: 'org.fedoraproject.FirewallD1',
        member: 'getDefaultZone',
      },
      50,
    );
    await expect(call).rejects.toThrow(/no answer from org.fedoraproject.FirewallD1 .* within 50 ms/);
    expect(silent.questions).toBe(1);
    connection.close();
    await expect(connection.call({ ...BUS, member: 'GetId' })).rejects.toThrow('the connection was closed');
  });

  /** As a container with user namespaces has it: we are nobody to ourselves, and somebody to the bus. */
  it('knows us in a user namespace, where our own number means nothing', async (context) => {
    if (spawnSync('unshare', ['--user', 'true']).status !== 0)
      context.skip('no user namespace can be made here');
    const script = await bundle(
      'dbus',
      `import { DbusConnection } from './src/system/dbus/connection.ts';
       const ignore = () => undefined;
       const bus = await DbusConnection.open(process.argv[2], { onMessage: ignore, onClosed: ignore });
       console.log('connected as', process.getuid());
       bus.close();`,
    );
    const { stdout } = spawnSync('unshare', ['--user', process.execPath, script, bus.path], {
      encoding: 'utf8',
    });
    expect(stdout).toBe('connected as 65534\n');
  });

  it('that closes in the middle of a call fails it', async () => {
    const closed: string[] = [];
    const connection = await DbusConnection.open(bus.path, {
      onMessage: () => undefined,
      onClosed: ({ message }) => closed.push(message),
    });
    await startFirewalld({ slow: true });
    const call = connection.call({
      destination: 'org.fedoraproject.FirewallD1',
      path: '/',
      interface: 'org.fedoraproject.FirewallD1',
      member: 'getDefaultZone',
    });
    const outcome = call.catch((error: unknown) => String(error));
    await bus.stop();
    expect(await outcome).toMatch(/the bus closed the connection|ECONNRESET/);
    expect(closed).toHaveLength(1);
  });
});
