/**
 * Affinity entries for an endpoint that must not be used any more are evicted: the map would go on sending clients there.
 * The map is read after the new pools are in the kernel, so that no such entry is learned meanwhile; and only where a
 * service with affinity lost something, or where it is not known what was before.
 *
 * The kernel can only return all entries: a hundred thousand take most of a second. So a sync waits for it only for a moment.
 */
import { hostPort, type Ip } from '../../../model/ip.ts';
import { type Protocol, PROTOCOLS } from '../../../model/objects.ts';
import { classifySource } from '../../../plan/decide.ts';
import { frontendAt } from '../../../plan/claims.ts';
import type { Plan, Pool, Route, ServicePortPlan, SourceClass } from '../../../plan/types.ts';
import { forEachSliced, type TimeSlice } from '../../../time/timeSlice.ts';
import { Committer, slices } from './committer.ts';
import { affinityMap } from './names.ts';
import { byName, editOperations } from './table.ts';
import type { AffinityEntry, Element, FrontendPlace } from './table.ts';
import type { WrittenTable } from './written.ts';

/** An entry that expires meanwhile makes the kernel refuse to delete the others. */
const TRIES = 5;
const CLASSES: readonly SourceClass[] = ['pod', 'node', 'outside'];
/** With more, all entries are looked at. */
const MOST_FRONTENDS = 10_000;
/** So long a sync waits; the rest goes on beside those that follow. */
const PATIENCE_MS = 20;

interface EvictOptions {
  readonly plan: Plan;
  /** All addresses of this node. */
  readonly nodeIps: readonly Ip[];
  readonly table: WrittenTable;
}

interface EvictionsOptions {
  readonly now: () => number;
  readonly timeSlice?: TimeSlice;
  /** Unset: a sync waits until all are evicted. */
  readonly wait?: (milliseconds: number) => Promise<void>;
}

/** By `address port`. */
type Places = ReadonlyMap<string, FrontendPlace>;
/** Where some client may have an entry that it should not have. */
type Stale = ReadonlyMap<Protocol, 'anywhere' | Places>;

const NOWHERE: Stale = new Map();

export class Evictions {
  readonly #given: EvictionsOptions;
  /** Noted, and not in the kernel yet; at the start it is not known what was before. */
  #noted: Stale = anywhere(PROTOCOLS);
  /** To be evicted, and being evicted. */
  #waiting: Stale = NOWHERE;
  #taken: Stale = NOWHERE;
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
    this.#noted = anywhere(PROTOCOLS);
  }

  /** Of service ports as they were: whether a client may have been sent where it may not be sent now. */
  note(before: Iterable<ServicePortPlan>, plan: Plan): void {
    for (const port of before) {
      if (port.affinitySeconds === undefined || this.#noted.get(port.protocol) === 'anywhere') continue;
      if (!lost(port, plan.servicePorts.get(port.id))) continue;
      const places = port.frontends.map(
        ({ address, port: number }) => [`${address} ${number}`, { address, port: number }] as const,
      );
      this.#noted = joined(this.#noted, new Map([[port.protocol, new Map(places)]]));
    }
  }

  /**
   * To be called when what was noted is in the kernel. `later`: some are being evicted still; `failed`: some were not. In
   * either case it has to be called again.
   */
  async evict(options: EvictOptions): Promise<'done' | 'later' | 'failed'> {
    const { wait } = this.#given;
    this.#waiting = joined(this.#waiting, this.#noted);
    this.#noted = NOWHERE;
    this.#options = options;
    if (this.#running) return 'later';
    if (this.#waiting.size === 0) return 'done';
    const run = this.#run();
    this.#running = run;
    const isDone = await (wait ? Promise.race([run, wait(PATIENCE_MS)]) : run);
    if (isDone === undefined) return 'later';
    return isDone ? 'done' : 'failed';
  }

  /** Also what is added meanwhile. */
  async #run(): Promise<boolean> {
    while (this.#waiting.size > 0 && this.#options) {
      this.#taken = this.#waiting;
      this.#waiting = NOWHERE;
      const failed = await this.#evictAll(this.#taken, this.#options);
      this.#taken = NOWHERE;
      this.#noted = joined(this.#noted, anywhere(failed));
      if (failed.length === 0) continue;
      this.#running = undefined;
      return false;
    }
    this.#running = undefined;
    return true;
  }

  async #evictAll(stale: Stale, options: EvictOptions): Promise<readonly Protocol[]> {
    const failed: Protocol[] = [];
    for (const [protocol, places] of stale) {
      if (!options.table.ruleset.sets.some(({ name }) => name === affinityMap(protocol))) continue;
      const frontends = places === 'anywhere' ? undefined : [...places.values()];
      let outcome: 'done' | 'refused' = 'refused';
      try {
        for (let tries = 0; tries < TRIES && outcome === 'refused'; tries++)
          outcome = await this.#evict(protocol, frontends, options);
      } catch {
        // Counted by the caller, and tried again: the rules themselves are written.
      }
      if (outcome === 'refused') failed.push(protocol);
    }
    return failed;
  }

  /** There may be a million entries: they are judged in time slices. */
  async #evict(
    protocol: Protocol,
    frontends: readonly FrontendPlace[] | undefined,
    options: EvictOptions,
  ): Promise<'done' | 'refused'> {
    const { now, timeSlice } = this.#given;
    const { client, ruleset } = options.table;
    const committer = new Committer(client, now);
    const stale: Element[] = [];
    const judge = (entry: AffinityEntry): void => {
      if (!mayGoOn(protocol, entry, options)) stale.push(entryElement(protocol, entry));
    };
    await forEachSliced(await client.affinityEntries(protocol, frontends), judge, timeSlice);
    for (const removes of slices(stale, committer.chunk)) {
      const { state } = await committer.attempt(
        editOperations([{ removes, adds: [] }], byName(ruleset.sets)),
      );
      if (state === 'refused') return 'refused';
    }
    return 'done';
  }
}

export function entryElement(protocol: Protocol, entry: AffinityEntry): Element {
  const { client, destination, port, endpoint, lifetime } = entry;
  const key = { address: client, secondAddress: destination, port };
  return { set: affinityMap(protocol), key, endpoint, lifetime };
}

function anywhere(protocols: Iterable<Protocol>): Stale {
  return new Map(Array.from(protocols, (protocol) => [protocol, 'anywhere']));
}

function joined(one: Stale, other: Stale): Stale {
  const all = new Map(one);
  for (const [protocol, places] of other) {
    const known = all.get(protocol) ?? new Map<string, FrontendPlace>();
    const both = known === 'anywhere' || places === 'anywhere' ? undefined : new Map([...known, ...places]);
    all.set(protocol, both && both.size <= MOST_FRONTENDS ? both : 'anywhere');
  }
  return all;
}

/** Whether a client that was sent somewhere may not be sent there again. */
function lost(before: ServicePortPlan, now: ServicePortPlan | undefined): boolean {
  if (now?.affinitySeconds === undefined) return true;
  // Frontends are many and share a few routes.
  const compared = new Map<Route, Set<Route>>();
  const isLost = (old: Route, left: Route): boolean => {
    const known = compared.get(old) ?? new Set();
    if (known.has(left)) return false;
    compared.set(old, known.add(left));
    const keys = endpointsOf(now, left);
    return [...endpointsOf(before, old)].some((key) => !keys.has(key));
  };
  return before.frontends.some((frontend) => {
    const same = frontendAt(now, frontend.address, frontend.port);
    return !same || CLASSES.some((from) => isLost(frontend.routes[from], same.routes[from]));
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
  const pool = route.verdict === 'forward' ? pools[route.pool] : undefined;
  if (!pool) return NOBODY;
  let keys = keysOfPool.get(pool);
  if (!keys) keysOfPool.set(pool, (keys = new Set(pool.map(({ key }) => key))));
  return keys;
}
