/** nftables mode in the namespace of this process: a cold start, and then one thing after another. */
import { limitMemory } from '../../src/daemon/memory.ts';
import { NftMonitor } from '../../src/modes/nftables/monitor.ts';
import { NftSync } from '../../src/modes/nftables/sync.ts';
import { NetlinkNftTables } from '../../src/modes/nftables/client.ts';
import { dataplaneOf } from '../../src/modes/dataplane.ts';
import { NETLINK_NETFILTER } from '../../src/netlink/socket.ts';
import { NetlinkSockets } from '../../src/netlink/sockets.ts';
import { objectKey } from '../../src/model/objects.ts';
import { Proxier } from '../../src/proxy/proxier.ts';
import { BlockMeter, cpuMs, liveMemory, memory } from '../meters.ts';
import { fill, makeService, makeSlice, VIEW } from '../cluster.ts';
import { Clock } from './clock.ts';
import type { ColdTime, OwnRun, OwnTask, Sizes } from './messages.ts';

const CHANGES = 200;
const BURST = 1000;
const BURSTS = 3;
const GROWN = 21;

export async function measureOurs(task: OwnTask): Promise<OwnRun> {
  limitMemory(); // as the daemon does
  const sockets = new NetlinkSockets();
  let lost = 0;
  const watch = task.listens ? await NftMonitor.start(sockets, () => lost++) : undefined;
  try {
    return { ...(await new Measurement(task, sockets).run()), lost };
  } finally {
    await watch?.close();
    await sockets.close();
  }
}

/** A proxy into the namespace of this process, for whoever needs its table. */
export function nftProxy(
  sockets: NetlinkSockets,
  { counters }: Pick<OwnTask, 'counters'>,
  clock = new Clock(),
): Proxier {
  const timed = clock.channel(sockets.channel(NETLINK_NETFILTER));
  const writer = new NftSync({
    tables: clock.tables(new NetlinkNftTables('IPv4', timed)),
    isProtected: true,
    masqueradeBit: 14,
    counters,
    nodeIps: () => [],
  });
  return new Proxier({ family: 'IPv4', settings: VIEW, writer });
}

export async function mustSync(proxy: Proxier): Promise<void> {
  const outcome = await proxy.sync();
  if (!outcome) throw new Error('nothing was synced');
  const [refused] = outcome.report.refused.values();
  if (refused) throw refused;
}

class Measurement {
  readonly #sizes: Sizes;
  readonly #clock = new Clock();
  readonly #proxy: Proxier;
  readonly #rebuilds: boolean;

  constructor(task: OwnTask, sockets: NetlinkSockets) {
    this.#sizes = task.sizes;
    this.#rebuilds = task.rebuilds;
    this.#proxy = nftProxy(sockets, task, this.#clock);
  }

  async run(): Promise<Omit<OwnRun, 'lost'>> {
    const { services, endpoints } = this.#sizes;
    fill(this.#proxy, this.#sizes);
    const block = new BlockMeter();
    block.start();
    const cold = await this.#cold();
    const blockMs = block.stop();
    const settled = memory();
    const live = liveMemory();
    const changeCommitMs: number[] = [];
    const changeMs = await this.#each(CHANGES, async (number) => {
      const index = (number * 37) % services;
      const slice = makeSlice(index, endpoints, number + 1);
      const elapsed = await this.#timed(() =>
        this.#proxy.onEndpointSlice(objectKey(slice.namespace, slice.name), slice),
      );
      changeCommitMs.push(this.#clock.take().kernel);
      return elapsed;
    });
    const addMs = await this.#each(CHANGES, (number) => this.#timed(() => this.#add(services + number)));
    const removeMs = await this.#each(CHANGES, (number) =>
      this.#timed(() => this.#remove(services + number)),
    );
    const [firstGrowMs = Number.NaN, ...growMs] = await this.#each(GROWN, (number) =>
      this.#grow(services + CHANGES + number),
    );
    this.#clock.take();
    const thousandMs = await this.#each(BURSTS, (number) => this.#timed(() => this.#burst(CHANGES + number)));
    const { longest: thousandLongestCommitMs } = this.#clock.take();
    const rebuildMs = this.#rebuilds ? await this.#rebuild() : undefined;
    return {
      cold,
      blockMs,
      settled,
      live,
      changeMs,
      changeCommitMs,
      addMs,
      removeMs,
      firstGrowMs,
      growMs,
      thousandMs,
      thousandLongestCommitMs,
      rebuildMs,
    };
  }

  async #cold(): Promise<ColdTime> {
    const cpuBefore = cpuMs();
    const started = performance.now();
    this.#proxy.replan();
    const planned = performance.now();
    const before = performance.eventLoopUtilization();
    const sample = () => ({
      total: performance.now() - started,
      active: performance.eventLoopUtilization(before).active,
      cpu: cpuMs() - cpuBefore,
      spent: this.#clock.take(),
    });
    await mustSync(this.#proxy);
    const { total, active: busy, cpu, spent } = sample();
    this.#clock.take();
    const { encode, kernel, longest, commits, bytes } = spent;
    const plan = planned - started;
    return {
      plan,
      compile: busy - encode,
      encode,
      wait: total - plan - busy,
      total,
      cpu,
      commit: kernel,
      longestCommit: longest,
      commits,
      bytes,
    };
  }

  async #rebuild(): Promise<number> {
    const started = performance.now();
    await dataplaneOf(this.#proxy.writer).rewrite(this.#proxy.plan);
    return performance.now() - started;
  }

  async #timed(event: () => void): Promise<number> {
    const started = performance.now();
    event();
    await mustSync(this.#proxy);
    return performance.now() - started;
  }

  async #each(count: number, measure: (number: number) => Promise<number>): Promise<readonly number[]> {
    const times: number[] = [];
    for (let number = 0; number < count; number++) times.push(await measure(number));
    return times;
  }

  #add(index: number, endpoints = this.#sizes.endpoints): void {
    const service = makeService(index);
    const slice = makeSlice(index, endpoints);
    this.#proxy.onService(objectKey(service.namespace, service.name), service);
    this.#proxy.onEndpointSlice(objectKey(slice.namespace, slice.name), slice);
  }

  #remove(index: number): void {
    const service = makeService(index);
    const slice = makeSlice(index, 1);
    this.#proxy.onService(objectKey(service.namespace, service.name), undefined);
    this.#proxy.onEndpointSlice(objectKey(slice.namespace, slice.name), undefined);
  }

  async #grow(index: number): Promise<number> {
    await this.#timed(() => this.#add(index, 3));
    return this.#timed(() => {
      const slice = makeSlice(index, 4);
      this.#proxy.onEndpointSlice(objectKey(slice.namespace, slice.name), slice);
    });
  }

  #burst(generation: number): void {
    const { services, endpoints } = this.#sizes;
    for (let number = 0; number < Math.min(BURST, services); number++) {
      const slice = makeSlice(number, endpoints, generation);
      this.#proxy.onEndpointSlice(objectKey(slice.namespace, slice.name), slice);
    }
  }
}
