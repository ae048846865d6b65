/**
 * Affinity entries for an endpoint that must not be used any more are evicted: the map would go on sending clients there.
 * The map is read after the new pools are in the kernel, so that no such entry is learned meanwhile; and only where a
 * service with affinity lost something, or where it is not known what was before.
 */
import { type Family, hostPort, type Ip } from '../../../model/ip.ts';
import type { Protocol } from '../../../model/objects.ts';
import { classifySource } from '../../../plan/decide.ts';
import { frontendAt } from '../../../plan/claims.ts';
import type { Plan, Pool, Route, ServicePortPlan, SourceClass } from '../../../plan/types.ts';
import { forEachSliced, type TimeSlice } from '../../../time/timeSlice.ts';
import { type Committer, slices } from './committer.ts';
import { affinityMap, connectionsSet, NFT_CHAINS, SCOPE_LIST, stickyChain, stickyMap } from './names.ts';
import { byName, editOperations, inSet, nftRule } from './table.ts';
import type {
  AffinityEntry,
  ChainSpec,
  Element,
  Key,
  NftClient,
  Ruleset,
  RuleSpec,
  SetsByName,
  Statement,
  TableSet,
} from './table.ts';

/** An entry that expires meanwhile makes the kernel refuse to delete the others. */
const TRIES = 5;
const CLASSES: readonly SourceClass[] = ['pod', 'node', 'outside'];

interface EvictOptions {
  readonly client: NftClient;
  readonly committer: Committer;
  readonly plan: Plan;
  /** All addresses of this node. */
  readonly nodeIps: readonly Ip[];
  readonly sets: SetsByName;
  readonly timeSlice?: TimeSlice;
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

/** Returns whether all are evicted. */
export async function evictStale(protocols: Iterable<Protocol>, options: EvictOptions): Promise<boolean> {
  let isDone = true;
  for (const protocol of protocols) {
    if (!options.sets.has(affinityMap(protocol))) continue;
    let outcome: 'done' | 'refused' = 'refused';
    for (let tries = 0; tries < TRIES && outcome === 'refused'; tries++)
      outcome = await evict(protocol, options);
    isDone &&= outcome === 'done';
  }
  return isDone;
}

/** There may be a million entries: they are judged in time slices. */
async function evict(protocol: Protocol, options: EvictOptions): Promise<'done' | 'refused'> {
  const { client, committer, sets, timeSlice } = options;
  const set = affinityMap(protocol);
  const stale: Element[] = [];
  const judge = (entry: AffinityEntry): void => {
    const key = { address: entry.client, secondAddress: entry.destination, port: entry.port };
    if (!mayGoOn(protocol, entry, options)) stale.push({ set, key });
  };
  await forEachSliced(await client.affinityEntries(protocol), judge, timeSlice);
  const portions = [...slices(stale, committer.chunk)];
  return committer.attemptAll(portions.map((removes) => editOperations([{ removes, adds: [] }], sets)));
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

const CLIENT: Key = ['source', 'destination', 'port'];
const ORIGINAL_CLIENT: Key = ['originalSource', 'originalDestination', 'originalPort'];
const ORIGINAL: Key = ['originalDestination', 'originalPort'];
/** The endpoint first: with its port named before it, nft can read `ct original proto-dst` again. */
const CONNECTION: Key = ['destination', 'port', 'originalDestination', 'originalPort'];
/** Affinity entries at any one time. */
const MOST_CLIENTS = 1_000_000;

export function affinitySet(protocol: Protocol): TableSet {
  return {
    name: affinityMap(protocol),
    key: ['address', 'address', 'port'],
    data: 'endpoint',
    dynamicSize: MOST_CLIENTS,
    comment: 'client and frontend',
  };
}

export function affinitySets(timeouts: readonly AffinityTimeout[], counters: boolean): readonly TableSet[] {
  const protocols = protocolsOf(timeouts);
  return [
    ...protocols.map(affinitySet),
    ...protocols.map(
      (protocol): TableSet => ({
        name: stickyMap(protocol),
        key: ['address', 'port'],
        data: 'verdict',
        comment: 'frontends with affinity, by time-out',
      }),
    ),
    ...(counters ? connectionSets(protocols) : []).map(
      ({ name }): TableSet => ({
        name,
        key: ['address', 'port', 'address', 'port'],
        counts: true,
        comment: 'endpoint and frontend',
      }),
    ),
  ];
}

/** Node ports have a set of their own: an address of the node may be a service's too. */
function connectionSets(protocols: readonly Protocol[]): readonly { name: string; protocol: Protocol }[] {
  return protocols.flatMap((protocol) =>
    SCOPE_LIST.map((scope) => ({ name: connectionsSet(scope, protocol), protocol })),
  );
}

/** `before`: a ruleset of the same family, whose chains are used again. */
export function affinityChains(
  timeouts: readonly AffinityTimeout[],
  { family, counters }: { readonly family: Family; readonly counters: boolean },
  before: Ruleset | undefined,
): readonly ChainSpec[] {
  const known = byName(before?.chains ?? []);
  const protocols = protocolsOf(timeouts);
  const of = (protocol: Protocol, ...statements: readonly Statement[]): RuleSpec =>
    nftRule({ kind: 'protocol', protocol }, ...statements);
  return [
    ...timeouts.map((timeout) => {
      const name = stickyChain(timeout.protocol, timeout.seconds);
      return known.get(name) ?? { name, rules: [learnRule(timeout, family)] };
    }),
    {
      name: NFT_CHAINS.remembered,
      rules: protocols.map((protocol) =>
        of(protocol, { kind: 'dnatByMap', key: CLIENT, map: affinityMap(protocol) }),
      ),
    },
    {
      name: NFT_CHAINS.remember,
      rules: [
        // To be found is to be counted.
        ...(counters ? connectionSets(protocols) : []).map(({ name, protocol }) =>
          of(protocol, inSet(CONNECTION, name)),
        ),
        // nft reads `ct original proto-dst` only where a port was named before it.
        ...protocols.map((protocol) =>
          of(
            protocol,
            { kind: 'hasPort' },
            { kind: 'verdictByMap', key: ORIGINAL, map: stickyMap(protocol) },
          ),
        ),
      ],
    },
  ];
}

function protocolsOf(timeouts: readonly AffinityTimeout[]): readonly Protocol[] {
  return [...new Set(timeouts.map(({ protocol }) => protocol))];
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
    { kind: 'learn', key: ORIGINAL_CLIENT, map: affinityMap(protocol), seconds },
  );
}
