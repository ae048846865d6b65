/** From a service port's part of the plan to elements of the table's sets and maps. */
import type { Endpoint } from '../../../model/endpointTracker.ts';
import { type Cidr, cidrContains, hostCidr, type Ip, parseBytes, prefixOf } from '../../../model/ip.ts';
import type {
  AllowedSources,
  Frontend,
  PoolName,
  Route,
  Routes,
  ServicePortPlan,
} from '../../../plan/types.ts';
import type { AffinityTimeout } from './affinity.ts';
import {
  connectionsSet,
  largeChain,
  largeMap,
  LARGEST_DIRECT_POOL,
  NFT_SETS,
  ownerComment,
  poolMap,
  SCOPES,
  stickyChain,
  stickyMap,
} from './names.ts';
import type { Scope, View } from './names.ts';
import type { NftSettings } from './ruleset.ts';
import type { Element, ElementKey } from './table.ts';

type ElementOptions = Pick<NftSettings, 'nodePortIps' | 'counters'>;

/** What a service port has in the table. */
export interface NftFragment {
  readonly elements: readonly Element[];
  /** Those that other service ports may have too. */
  readonly counted: readonly Element[];
  /** For each place that uses one. */
  readonly parts: readonly TablePart[];
}

/** What the table must have for an element to be looked up: the maps of one pool size, the chain of a time-out. */
export type TablePart = PoolSize | AffinityTimeout;

/** A place where a pool of some size is looked up. */
interface PoolSize {
  readonly scope: Scope;
  readonly view: View;
  readonly size: number;
}

/** Where a frontend is looked up. */
type ServedKey = Pick<ElementKey, 'address'> & Required<Pick<ElementKey, 'protocol' | 'port'>>;

export const NO_ELEMENTS: NftFragment = { elements: [], counted: [], parts: [] };

/** The pools of a frontend, by who dials it: those from outside have one of their own where it is another. */
function poolsOf({ routes: { pod, node, outside } }: Frontend): Partial<Record<View, PoolName>> {
  const inside = pod.verdict === 'forward' ? pod : node;
  const any = inside.verdict === 'forward' ? inside.pool : undefined;
  const own = outside.verdict === 'forward' && outside.pool !== any ? outside.pool : undefined;
  return { ...(any && { any }), ...(own && { outside: own }) };
}

/** What the table must have for the elements of a service port: one for each place that uses it. */
export function partsOf({
  affinitySeconds: seconds,
  protocol,
  frontends,
  pools,
}: ServicePortPlan): TablePart[] {
  const parts: TablePart[] = seconds === undefined ? [] : [{ protocol, seconds }];
  for (const frontend of frontends) {
    const scope = frontend.address === undefined ? 'nodePort' : 'address';
    const { any, outside } = poolsOf(frontend);
    if (any) parts.push({ scope, view: 'any', size: pools[any]?.length ?? 0 });
    if (outside) parts.push({ scope, view: 'outside', size: pools[outside]?.length ?? 0 });
  }
  return parts;
}

export function compileElements(port: ServicePortPlan, options: ElementOptions): NftFragment {
  return new Fragment(port, options);
}

/** Endpoints of this node that may dial themselves. Other service ports may have the same. */
export function hairpinsOf({ localEndpoints = [], protocol }: ServicePortPlan): readonly Element[] {
  return localEndpoints.map(({ ip, port }) => ({
    set: NFT_SETS.hairpin,
    key: { address: ip, protocol, secondAddress: ip, port },
  }));
}

class Fragment implements NftFragment {
  readonly elements: Element[] = [];
  readonly counted: Element[] = [];
  readonly parts: readonly TablePart[];
  readonly #port: ServicePortPlan;
  readonly #options: ElementOptions;
  readonly #comment: string;
  #sourceRanges: Map<AllowedSources, readonly Cidr[]> | undefined;

  constructor(port: ServicePortPlan, options: ElementOptions) {
    this.#port = port;
    this.#options = options;
    this.#comment = ownerComment(port.name);
    this.parts = partsOf(port);
    for (const frontend of port.frontends) this.#frontend(frontend);
    if (port.localEndpoints) this.counted.push(...hairpinsOf(port));
  }

  #frontend(frontend: Frontend): void {
    const { address, port, allowedSources } = frontend;
    const { protocol, affinitySeconds } = this.#port;
    if (address === undefined) this.#served('nodePort', { protocol, port }, frontend);
    else {
      const key: ServedKey = { address, protocol, port };
      this.counted.push({ set: NFT_SETS.serviceIPs, key: { address } });
      if (frontend.kind === 'clusterIP') this.counted.push({ set: NFT_SETS.clusterIPs, key: { address } });
      this.#served('address', key, frontend);
      if (allowedSources) this.#sources(key, allowedSources);
    }
    if (affinitySeconds !== undefined) this.#sticky(frontend, affinitySeconds);
  }

  /** Which endpoints, seen from where; or why none. */
  #served(scope: Scope, key: ServedKey, frontend: Frontend): void {
    const { pod, node, outside } = frontend.routes;
    const pools = poolsOf(frontend);
    const names = SCOPES[scope];
    if (isMasqueraded(pod) && isMasqueraded(outside)) this.#add(names.masqueradeAlways, key);
    else if (isMasqueraded(outside)) this.#add(names.masqueradeOthers, key);
    else if (isMasqueraded(node)) this.#add(names.masqueradeNode, key);
    const inside = pod.verdict === 'forward' ? pod : node;
    if (pools.any) this.#pool(scope, 'any', key, pools.any);
    if (pools.outside) this.#pool(scope, 'outside', key, pools.outside);
    if (outside.verdict === 'drop' && pools.any) this.#add(names.droppedOutside, key);
    if (this.#port.affinitySeconds !== undefined) this.#add(names.remembering, key);
    if (inside.verdict === 'reject') this.#add(names.refused, key);
    if (inside.verdict === 'drop') this.#add(names.dropped, key);
  }

  #pool(scope: Scope, view: View, key: ServedKey, name: PoolName): void {
    const pool = this.#port.pools[name] ?? [];
    const size = pool.length;
    const comment = this.#comment;
    const set = poolMap(scope, view, size);
    let index = 0;
    for (const endpoint of pool) {
      this.elements.push({ set, key: size === 1 ? key : placeIn(key, index), comment, endpoint });
      index++;
    }
    if (size > LARGEST_DIRECT_POOL)
      this.elements.push({ set: largeMap(scope, view), key, chain: largeChain(scope, view, size), comment });
  }

  #sources(key: ElementKey, allowed: AllowedSources): void {
    this.#add(SCOPES.address.restricted, key);
    const known = (this.#sourceRanges ??= new Map());
    let ranges = known.get(allowed);
    if (!ranges)
      known.set(allowed, (ranges = withoutCovered([...allowed.ranges, ...allowed.hosts.map(hostCidr)])));
    for (const range of ranges) this.#add(NFT_SETS.allowed, { ...key, range });
  }

  /** With its connections, where they are counted: a client with an affinity entry passes its pool by. */
  #sticky({ address: own, port: secondPort, routes }: Frontend, seconds: number): void {
    const { protocol } = this.#port;
    const { nodePortIps, counters } = this.#options;
    const addresses = own === undefined ? nodePortIps : [own];
    const [set, chain] = [stickyMap(protocol), stickyChain(protocol, seconds)];
    for (const address of addresses)
      this.counted.push({ set, key: { address, port: secondPort }, chain, comment: this.#comment });
    if (!counters) return;
    const counting = connectionsSet(own === undefined ? 'nodePort' : 'address', protocol);
    for (const { ip: address, port } of this.#endpointsOf(routes))
      for (const secondAddress of addresses)
        this.#add(counting, { address, port, secondAddress, secondPort });
  }

  /** Whoever may be sent to them. */
  #endpointsOf(routes: Routes): Iterable<Endpoint> {
    const found = new Map<string, Endpoint>();
    for (const route of Object.values(routes)) {
      const pool = route.verdict === 'forward' ? this.#port.pools[route.pool] : undefined;
      for (const endpoint of pool ?? []) found.set(endpoint.key, endpoint);
    }
    return found.values();
  }

  #add(set: string, key: ElementKey): void {
    this.elements.push({ set, key, comment: this.#comment });
  }
}

/** A literal for each shape: copies with `...` took a third of the time of compiling. */
function placeIn({ address, protocol, port }: ServedKey, index: number): ElementKey {
  return address === undefined ? { protocol, port, index } : { address, protocol, port, index };
}

function isMasqueraded(route: Route): boolean {
  return route.verdict === 'forward' && route.masquerade;
}

/**
 * Those that say it all, by where they begin. Two networks are apart, or one lies within the other; so in this order only
 * the last one that was kept can hold the next.
 */
export function withoutCovered(ranges: Iterable<Cidr>): readonly Cidr[] {
  const sorted = Array.from(new Set(ranges), (range) => ({
    range,
    start: startOf(range),
    prefix: prefixOf(range),
  })).sort((a, b) => (a.start < b.start ? -1 : a.start > b.start ? 1 : a.prefix - b.prefix));
  const kept: Cidr[] = [];
  for (const { range } of sorted) {
    const last = kept.at(-1);
    if (last === undefined || !cidrContains(last, addressOf(range))) kept.push(range);
  }
  return kept;
}

/** Texts of one family that sort like the addresses. */
function startOf(range: Cidr): string {
  let text = range.includes(':') ? '6' : '4';
  for (const byte of parseBytes(addressOf(range)) ?? []) text += byte.toString(16).padStart(2, '0');
  return text;
}

/** A canonical range begins with an address. */
function addressOf(range: Cidr): Ip {
  return range.slice(0, range.indexOf('/')) as Ip;
}
