/**
 * Affinity entries for an endpoint that must not be used any more are evicted: the map would go on
 * sending them there. It is asked about after the new pools are in the kernel, so that nobody is noted down meanwhile;
 * and only where a service with affinity lost something, or where it is not known what was before.
 */
import { type Family, hostPort, type Ip } from '../../../model/ip.ts';
import type { Protocol } from '../../../model/objects.ts';
import { classifySource } from '../../../plan/decide.ts';
import { frontendAt } from '../../../plan/claims.ts';
import type { Plan, Pool, Route, ServicePortPlan, SourceClass } from '../../../plan/types.ts';
import { forEachSliced, type TimeSlice } from '../../../time/timeSlice.ts';
import { affinityMap, NFT_CHAINS, connectionsSet, SCOPE_LIST, stickyChain, stickyMap } from './names.ts';
import {
  type ChainSpec,
  inSet,
  type Key,
  nftRule,
  type RuleSpec,
  type Ruleset,
  type TableSet,
} from './rule.ts';
import { elementOperations, type NftClient, type AffinityEntry } from './transaction.ts';

/** An entry that expires in the meantime makes the kernel refuse to delete the others. */
const TRIES = 5;
const CLASSES: readonly SourceClass[] = ['pod', 'node', 'outside'];

interface EvictOptions {
  readonly client: NftClient;
  readonly plan: Plan;
  /** All addresses of this node. */
  readonly nodeIps: readonly Ip[];
  readonly sets: ReadonlyMap<string, TableSet>;
  /** How many elements one transaction should have. */
  readonly chunk: number;
  readonly timeSlice?: TimeSlice | undefined;
}

/** By protocol: whether a client may have been sent where it may not be sent now. */
export function protocolsToEvict(before: Iterable<ServicePortPlan>, plan: Plan): ReadonlySet<Protocol> {
  const found = new Set<Protocol>();
  for (const port of before) {
    if (port.affinitySeconds === undefined || found.has(port.protocol)) continue;
    if (lost(port, plan.servicePorts.get(port.id))) found.add(port.protocol);
  }
  return found;
}

export interface Eviction {
  readonly isDone: boolean;
  readonly transactions: number;
}

export async function evictStale(protocols: Iterable<Protocol>, options: EvictOptions): Promise<Eviction> {
  let isDone = true;
  let transactions = 0;
  for (const protocol of protocols) {
    if (!options.sets.has(affinityMap(protocol))) continue;
    let outcome: 'done' | 'refused' = 'refused';
    for (let tries = 0; tries < TRIES && outcome === 'refused'; tries++) {
      const stale = await staleEntries(protocol, options);
      transactions += Math.ceil(stale.length / options.chunk);
      outcome = await evict(protocol, stale, options);
    }
    isDone &&= outcome === 'done';
  }
  return { isDone, transactions };
}

/** There may be a million entries: they are judged in time slices. */
async function staleEntries(protocol: Protocol, options: EvictOptions): Promise<readonly AffinityEntry[]> {
  const stale: AffinityEntry[] = [];
  await forEachSliced(
    await options.client.affinityEntries(protocol),
    (each) => {
      if (!mayGoOn(protocol, each, options)) stale.push(each);
    },
    options.timeSlice,
  );
  return stale;
}

async function evict(
  protocol: Protocol,
  stale: readonly AffinityEntry[],
  { client, sets, chunk }: EvictOptions,
): Promise<'done' | 'refused'> {
  const set = affinityMap(protocol);
  for (let start = 0; start < stale.length; start += chunk) {
    const elements = stale.slice(start, start + chunk).map(({ client, destination, port }) => ({
      set,
      key: { address: client, secondAddress: destination, port },
    }));
    const { state } = await client.commit(elementOperations('deleteElements', elements, sets));
    if (state === 'refused') return state;
  }
  return 'done';
}

/** Whether a client that was sent somewhere may not be sent there again. */
function lost(before: ServicePortPlan, now: ServicePortPlan | undefined): boolean {
  if (now?.affinitySeconds === undefined) return true;
  // Frontends are many and share a few routes.
  const known = new Map<Route, Map<Route, boolean>>();
  return before.frontends.some((frontend) => {
    const same = frontendAt(now, frontend.address, frontend.port);
    return (
      !same || CLASSES.some((from) => lostFrom(before, frontend.routes[from], now, same.routes[from], known))
    );
  });
}

function lostFrom(
  before: ServicePortPlan,
  oldRoute: Route,
  now: ServicePortPlan,
  newRoute: Route,
  known: Map<Route, Map<Route, boolean>>,
): boolean {
  let answers = known.get(oldRoute);
  if (!answers) known.set(oldRoute, (answers = new Map<Route, boolean>()));
  let isLost = answers.get(newRoute);
  if (isLost === undefined) {
    const [old, left] = [endpointsOf(before, oldRoute), endpointsOf(now, newRoute)];
    answers.set(newRoute, (isLost = [...old].some((key) => !left.has(key))));
  }
  return isLost;
}

function mayGoOn(
  protocol: Protocol,
  { client, destination, port, endpoint }: AffinityEntry,
  { plan, nodeIps }: EvictOptions,
): boolean {
  // A node port answers on several addresses.
  const found = plan.find(destination, protocol, port) ?? plan.find(undefined, protocol, port);
  if (found?.servicePort.affinitySeconds === undefined) return false;
  const { servicePort, frontend } = found;
  const packet = { source: client, destination, protocol, port, inInterface: undefined };
  const from = classifySource(plan.view.localDetector, packet, { addresses: nodeIps });
  const key = hostPort(endpoint.ip, endpoint.port);
  return possibleClasses(plan, from).some((each) => endpointsOf(servicePort, frontend.routes[each]).has(key));
}

/** Where pods are detected by interface, which an entry does not hold, any source but the node may be one. */
function possibleClasses({ view }: Plan, from: SourceClass): readonly SourceClass[] {
  const isByInterface =
    view.localDetector.kind === 'interface' || view.localDetector.kind === 'interfacePrefix';
  return isByInterface && from === 'outside' ? ['pod', 'outside'] : [from];
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

/*
 * Session affinity: which endpoint a known client gets, and how long its entry lasts.
 *
 * The kernel takes a time-out from the rule that adds the entry, and from nowhere else: so each time-out in use has a
 * chain. A verdict map leads there. Whatever their number, a connection to a service without affinity is one lookup that
 * misses. (A rule for each, tried in turn, cost every new connection 0.14 µs: 0.7 ms with five thousand.)
 */

/** A time-out that some service has, for one protocol. */
export interface AffinityTimeout {
  readonly protocol: Protocol;
  readonly seconds: number;
}

interface AffinityOptions {
  readonly family: Family;
  readonly counters: boolean;
}

const CLIENT: Key = ['source', 'destination', 'port'];
const ORIGINAL_CLIENT: Key = ['originalSource', 'originalDestination', 'originalPort'];
const ORIGINAL: Key = ['originalDestination', 'originalPort'];
/** The endpoint first: with its port named before it, nft can read `ct original proto-dst` again. */
const CONNECTION: Key = ['destination', 'port', 'originalDestination', 'originalPort'];
/** Affinity entries of one time. */
const MOST_CLIENTS = 1_000_000;

export function affinitySets(timeouts: readonly AffinityTimeout[], counters: boolean): readonly TableSet[] {
  const protocols = protocolsOf(timeouts);
  return [
    ...protocols.map(
      (protocol): TableSet => ({
        name: affinityMap(protocol),
        key: ['address', 'address', 'port'],
        data: 'endpoint',
        dynamicSize: MOST_CLIENTS,
        comment: 'client and frontend',
      }),
    ),
    ...protocols.map(
      (protocol): TableSet => ({
        name: stickyMap(protocol),
        key: ['address', 'port'],
        data: 'verdict',
        comment: 'frontends with affinity, by time-out',
      }),
    ),
    ...(counters ? protocols : []).flatMap((protocol) =>
      SCOPE_LIST.map(
        (scope): TableSet => ({
          name: connectionsSet(scope, protocol),
          key: ['address', 'port', 'address', 'port'],
          counts: true,
          comment: 'endpoint and frontend',
        }),
      ),
    ),
  ];
}

/** `before`: a ruleset of the same family, whose chains are used again. */
export function affinityChains(
  timeouts: readonly AffinityTimeout[],
  { family, counters }: AffinityOptions,
  before: Ruleset | undefined,
): readonly ChainSpec[] {
  const known = new Map(before?.chains.map((chain) => [chain.name, chain]));
  const protocols = protocolsOf(timeouts);
  return [
    ...timeouts.map((timeout) => {
      const name = stickyChain(timeout.protocol, timeout.seconds);
      return known.get(name) ?? { name, rules: [learnRule(timeout, family)] };
    }),
    { name: NFT_CHAINS.remembered, rules: protocols.map(lookupRule) },
    {
      name: NFT_CHAINS.remember,
      rules: [...(counters ? protocols.flatMap(countRules) : []), ...protocols.map(stickyRule)],
    },
  ];
}

function protocolsOf(timeouts: readonly AffinityTimeout[]): readonly Protocol[] {
  return [...new Set(timeouts.map(({ protocol }) => protocol))];
}

function lookupRule(protocol: Protocol): RuleSpec {
  return nftRule(
    { kind: 'protocol', protocol },
    { kind: 'dnatByMap', key: CLIENT, map: affinityMap(protocol) },
  );
}

/** To be found is to be counted. Node ports have a set of their own: an address of the node may be a service's too. */
function countRules(protocol: Protocol): readonly RuleSpec[] {
  return SCOPE_LIST.map((scope) =>
    nftRule({ kind: 'protocol', protocol }, inSet(CONNECTION, connectionsSet(scope, protocol))),
  );
}

/** nft reads `ct original proto-dst` only where a port was named before it. */
function stickyRule(protocol: Protocol): RuleSpec {
  return nftRule(
    { kind: 'protocol', protocol },
    { kind: 'hasPort' },
    { kind: 'verdictByMap', key: ORIGINAL, map: stickyMap(protocol) },
  );
}

/**
 * After the rewriting, when it is known where to; what was dialled is still known too.
 *
 * Of IPv6, nft could not read the line whatever stood before it: it has no registers for two addresses, a port and an
 * endpoint, and would end with a failed assertion.
 */
function learnRule({ protocol, seconds }: AffinityTimeout, family: Family): RuleSpec {
  return nftRule(
    { kind: 'protocol', protocol },
    ...(family === 'IPv4' ? [{ kind: 'hasPort' } as const] : []),
    {
      kind: 'learn',
      key: ORIGINAL_CLIENT,
      map: affinityMap(protocol),
      seconds,
    },
  );
}
