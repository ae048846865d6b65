/**
 * Affinity entries for an endpoint that must not be used any more are evicted: the map would go on sending clients there.
 * The map is read after the new pools are in the kernel, so that no such entry is learned meanwhile; and only where a
 * service with affinity lost something, or where it is not known what was before.
 *
 * The kernel can only return all entries: a hundred thousand take most of a second. So a sync waits for it only for a moment.
 */
import { deepEqual } from '../../../model/equal.ts';
import { hostPort, type Ip } from '../../../model/ip.ts';
import { type Protocol, PROTOCOLS } from '../../../model/objects.ts';
import { classifySource } from '../../../plan/decide.ts';
import type { Plan, Pool, Route, ServicePortPlan } from '../../../plan/types.ts';
import { forEachSliced, type TimeSlice } from '../../../time/timeSlice.ts';
import { affinityMap } from './names.ts';
import { byName, editOperations, slices } from './table.ts';
import type { AffinityEntry, Element } from './table.ts';
import type { WrittenTable } from './written.ts';

/** An entry that expires meanwhile makes the kernel refuse to delete the others. */
const TRIES = 5;
/** So long a sync waits; the rest goes on beside those that follow. */
const PATIENCE_MS = 20;

interface EvictOptions {
  readonly plan: Plan;
  /** All addresses of this node. */
  readonly nodeIps: readonly Ip[];
  readonly table: WrittenTable;
}

interface EvictionsOptions {
  readonly timeSlice: TimeSlice;
  readonly wait: (milliseconds: number) => Promise<void>;
}

export class Evictions {
  readonly #given: EvictionsOptions;
  /** Protocols of which some client may have an entry that it should not have; at the start it is not known what was before. */
  readonly #noted = new Set(PROTOCOLS);
  /** Noted, and the change is in the kernel. */
  readonly #waiting = new Set<Protocol>();
  #options: EvictOptions | undefined;
  #running: Promise<boolean> | undefined;

  constructor(given: EvictionsOptions) {
    this.#given = given;
  }

  /** Ends when nothing is being evicted any more; `undefined`: nothing is. */
  get running(): Promise<boolean> | undefined {
    return this.#running;
  }

  /** In another table any entry may be stale. */
  noteAll(): void {
    for (const protocol of PROTOCOLS) this.#noted.add(protocol);
  }

  /** Of service ports as they were: whether a client may have been sent where it may not be sent now. */
  note(before: Iterable<ServicePortPlan>, plan: Plan): void {
    for (const port of before)
      if (port.affinitySeconds !== undefined && hasLost(port, plan.servicePorts.get(port.id)))
        this.#noted.add(port.protocol);
  }

  /**
   * To be called when what was noted is in the kernel. `later`: some are being evicted still; `failed`: some were not. In
   * either case it has to be called again.
   */
  async evict(options: EvictOptions): Promise<'done' | 'later' | 'failed'> {
    for (const protocol of this.#noted) this.#waiting.add(protocol);
    this.#noted.clear();
    this.#options = options;
    if (this.#running) return 'later';
    if (this.#waiting.size === 0) return 'done';
    this.#running = this.#run();
    const isDone = await Promise.race([this.#running, this.#given.wait(PATIENCE_MS)]);
    if (isDone === undefined) return 'later';
    return isDone ? 'done' : 'failed';
  }

  /** Also what is added meanwhile. */
  async #run(): Promise<boolean> {
    const failed = new Set<Protocol>();
    for (const protocol of this.#waiting) {
      this.#waiting.delete(protocol);
      if (this.#options && !(await this.#evictAll(protocol, this.#options))) failed.add(protocol);
    }
    for (const protocol of failed) this.#noted.add(protocol);
    this.#running = undefined;
    return failed.size === 0;
  }

  async #evictAll(protocol: Protocol, options: EvictOptions): Promise<boolean> {
    if (!options.table.ruleset.sets.some(({ name }) => name === affinityMap(protocol))) return true;
    try {
      for (let tries = 0; tries < TRIES; tries++) if (await this.#evict(protocol, options)) return true;
    } catch {
      // Counted by the caller, and tried again: the rules themselves are written.
    }
    return false;
  }

  /** There may be a million entries: they are judged in time slices. */
  async #evict(protocol: Protocol, options: EvictOptions): Promise<boolean> {
    const { client, chunk, ruleset } = options.table;
    const stale: Element[] = [];
    const judge = (entry: AffinityEntry): void => {
      if (!mayGoOn(protocol, entry, options)) stale.push(entryElement(protocol, entry));
    };
    await forEachSliced(await client.affinityEntries(protocol), judge, this.#given.timeSlice);
    const sets = byName(ruleset.sets);
    for (const removes of slices(stale, chunk)) {
      const { state } = await client.commit(editOperations([{ removes, adds: [] }], sets));
      if (state === 'refused') return false;
    }
    return true;
  }
}

export function entryElement(protocol: Protocol, entry: AffinityEntry): Element {
  const { client, destination, port, endpoint, lifetime } = entry;
  const key = { address: client, secondAddress: destination, port };
  return { set: affinityMap(protocol), key, endpoint, lifetime };
}

/** Whether a client that was sent somewhere may not be sent there again. */
function hasLost(before: ServicePortPlan, now: ServicePortPlan | undefined): boolean {
  if (now?.affinitySeconds === undefined || !deepEqual(before.frontends, now.frontends)) return true;
  return (['cluster', 'local'] as const).some((pool) => {
    const keys = keysOf(now.pools[pool]);
    return [...keysOf(before.pools[pool])].some((key) => !keys.has(key));
  });
}

/** Whether the client of this entry may be sent to its endpoint. */
export function mayGoOn(
  protocol: Protocol,
  { client, destination, port, endpoint }: AffinityEntry,
  { plan, nodeIps }: Pick<EvictOptions, 'plan' | 'nodeIps'>,
): boolean {
  // A node port answers on several addresses.
  const found = plan.find(destination, protocol, port) ?? plan.find(undefined, protocol, port);
  if (found?.servicePort.affinitySeconds === undefined) return false;
  const { servicePort, frontend } = found;
  const packet = { source: client, destination, protocol, port, inInterface: undefined };
  const from = classifySource(plan.view.localDetector, packet, { addresses: nodeIps });
  const key = hostPort(endpoint.ip, endpoint.port);
  // Where pods are detected by interface, which an entry does not hold, any source but the node may be one.
  const mayBePod = from === 'outside' && plan.view.localDetector.kind.startsWith('interface');
  const classes = mayBePod ? (['pod', 'outside'] as const) : [from];
  return classes.some((each) => endpointsOf(servicePort, frontend.routes[each]).has(key));
}

/** Made once for each pool: every affinity entry needs one. */
const keysOfPool = new WeakMap<Pool, ReadonlySet<string>>();
const NOBODY: ReadonlySet<string> = new Set();

function endpointsOf({ pools }: ServicePortPlan, route: Route): ReadonlySet<string> {
  return keysOf(route.verdict === 'forward' ? pools[route.pool] : undefined);
}

function keysOf(pool: Pool | undefined): ReadonlySet<string> {
  if (!pool) return NOBODY;
  let keys = keysOfPool.get(pool);
  if (!keys) keysOfPool.set(pool, (keys = new Set(pool.map(({ key }) => key))));
  return keys;
}
