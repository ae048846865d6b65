/** The writer with its clock: when drained endpoints are looked at, and who waits for whom. */
import { expect, test } from 'vitest';
import { IpvsProxier } from '../../../src/modes/ipvs/proxier.ts';
import { IptablesClient } from '../../../src/modes/iptables/client.ts';
import type { Ip } from '../../../src/model/ip.ts';
import { FakeIpvsKernel } from './rules/fakeKernel.ts';
import { printWorld } from './rules/cluster.ts';
import { Cluster } from '../../plan/cluster.ts';
import { cidr, ip, VIEW } from '../../plan/given.ts';
import { FakeIptables } from '../../scenarios/fakeIptables.ts';
import { FakeClock } from '../../time/fakeClock.ts';

const SERVER = 'TCP 10.96.0.1:80';
const SECOND = '10.244.0.2:80';
const ONE = 'a/x-1 of x 80 | 10.244.0.1';
const BOTH = 'a/x-1 of x 80 | 10.244.0.1 | 10.244.0.2';
const DRAINED = `-a -t 10.96.0.1:80 -r ${SECOND} -m -w 0`;

class World {
  readonly kernel = new FakeIpvsKernel();
  readonly clock = new FakeClock();
  readonly cluster: Cluster;
  readonly failures: unknown[] = [];
  nodeIps: readonly Ip[] = [ip('192.0.2.11'), ip('192.0.2.10')];
  readonly #proxy: IpvsProxier;
  #cancelSync = (): void => {};

  private constructor(iptables: IptablesClient, cluster: Cluster) {
    this.cluster = cluster;
    this.#proxy = new IpvsProxier({
      iptables,
      client: this.kernel,
      masqueradeBit: 14,
      scheduler: 'rr',
      excludeCIDRs: [],
      drainLimitMs: 900_000,
      nodeIps: () => this.nodeIps,
      onDrainFailure: (error) => this.failures.push(error),
      clock: this.clock,
    });
  }

  static async start(cluster = new Cluster()): Promise<World> {
    const { runner } = new FakeIptables();
    return new World(await IptablesClient.open({ family: 'IPv4', variant: 'nft', runner }), cluster);
  }

  async sync(...lines: readonly string[]): Promise<string> {
    this.cluster.tell(...lines);
    const { kind, retryAfterMs } = await this.#proxy.sync(this.cluster.planner, this.cluster.takeDirty());
    this.#cancelSync();
    this.#cancelSync = () => {};
    if (retryAfterMs !== undefined)
      this.#cancelSync = this.clock.schedule(retryAfterMs, () => void this.sync());
    return kind;
  }

  get world(): readonly string[] {
    return printWorld(this.kernel);
  }
}

async function draining(): Promise<World> {
  const world = await World.start();
  await world.sync('a/x 10.96.0.1 80', BOTH);
  world.kernel.destination(SERVER, SECOND).connections = 1;
  expect(world.clock.pending).toBe(0);
  await world.sync(ONE);
  return world;
}

test('drained endpoints are looked at every half minute, while there are some', async () => {
  const world = await draining();
  expect(world.clock.pending).toBe(1);
  await world.clock.advance(30_000);
  expect(world.world).toContain(DRAINED);
  expect(world.clock.pending).toBe(1);
  world.kernel.destination(SERVER, SECOND).connections = 0;
  await world.clock.advance(29_999);
  expect(world.world).toContain(DRAINED);
  await world.clock.advance(1);
  expect(world.world).not.toContain(DRAINED);
  expect(world.clock.pending).toBe(0);
});

test('connections that never end are cut at the limit', async () => {
  const world = await draining();
  await world.clock.advance(870_000);
  expect(world.world).toContain(DRAINED);
  await world.clock.advance(30_000);
  expect(world.world).not.toContain(DRAINED);
});

test('many syncs ask for one look', async () => {
  const world = await draining();
  await world.sync('b/y 10.96.0.2 80');
  await world.sync('c/z 10.96.0.3 80');
  expect(world.clock.pending).toBe(1);
});

test('a look that fails is told of, and repeated', async () => {
  const world = await draining();
  const read = world.kernel.readDestinations.bind(world.kernel);
  world.kernel.readDestinations = () => Promise.reject(new Error('no answer'));
  await world.clock.advance(30_000);
  expect(world.failures).toEqual([expect.objectContaining({ message: 'no answer' })]);
  world.kernel.readDestinations = read;
  world.kernel.destination(SERVER, SECOND).connections = 0;
  await world.clock.advance(30_000);
  expect(world.world).not.toContain(DRAINED);
});

test('a sync that fails does not stop the next', async () => {
  const world = await World.start();
  world.kernel.before = () => {
    throw new Error('no answer');
  };
  const first = world.sync('a/x 10.96.0.1 80', BOTH);
  await expect(first).rejects.toThrow('no answer');
  world.kernel.before = () => {};
  expect(await world.sync()).toBe('full');
  expect(world.world).toContain('addr 10.96.0.1');
});

test('the order in which the node’s addresses are told makes no difference', async () => {
  const world = await World.start();
  await world.sync('a/x 10.96.0.1 80@30080');
  world.nodeIps = [...world.nodeIps].reverse();
  expect(await world.sync()).toBe('nothing');
});

test('node ports answer where the node says that they do', async () => {
  const nodePorts = { ranges: [cidr('192.0.2.11/32')], loopback: false };
  const world = await World.start(new Cluster({ ...VIEW, nodePorts }));
  await world.sync('a/x 10.96.0.1 80@30080 ext=192.0.2.10');
  expect(world.world.filter((line) => line.startsWith('-A'))).toEqual([
    '-A -t 10.96.0.1:80 -s rr',
    '-A -t 192.0.2.10:80 -s rr',
    '-A -t 192.0.2.11:30080 -s rr',
  ]);
  expect(world.world.filter((line) => line.startsWith('addr'))).toEqual(['addr 10.96.0.1']);
});
