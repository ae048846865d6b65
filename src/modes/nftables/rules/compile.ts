/** From a service port's part of the plan to elements of the table's sets and maps. */
import type { Endpoint } from '../../../model/endpointTracker.ts';
import { type Cidr, cidrContains, hostCidr, type Ip, parseBytes, prefixOf } from '../../../model/ip.ts';
import type { AllowedSources, Frontend, Pool, Route, Routes, ServicePortPlan } from '../../../plan/types.ts';
import type { AffinityTimeout } from './affinity.ts';
import {
  connectionsSet,
  largeChain,
  largeMap,
  LARGEST_DIRECT_POOL,
  ownerComment,
  poolMap,
  type Scope,
  SCOPES,
  NFT_SETS,
  stickyChain,
  stickyMap,
  type View,
} from './names.ts';
import type { Element, ElementKey } from './rule.ts';

interface ElementOptions {
  /** Addresses of this node at which node ports answer: affinity is kept for each of them. */
  readonly nodePortIps: readonly Ip[];
  /** Connections are counted. */
  readonly counters: boolean;
}

/** What a service port has in the table. Elements of `counted` sets may be other service ports' too. */
export interface NftFragment {
  readonly elements: readonly Element[];
  readonly counted: readonly Element[];
  /** Pools, one for each place where one is used. */
  readonly pools: readonly PoolSize[];
  readonly affinity: AffinityTimeout | undefined;
}

/** A place where a pool of some size is looked up. */
export interface PoolSize {
  readonly scope: Scope;
  readonly view: View;
  readonly size: number;
}

export const NO_ELEMENTS: NftFragment = { elements: [], counted: [], pools: [], affinity: undefined };

export function compileElements(port: ServicePortPlan, options: ElementOptions): NftFragment {
  return build(new Builder(port, options, true), port);
}

/** All but its own elements, of which a large cluster has too many to make them twice. */
export function compileShared(port: ServicePortPlan, options: ElementOptions): NftFragment {
  return build(new Builder(port, options, false), port);
}

function build(builder: Builder, port: ServicePortPlan): NftFragment {
  for (const frontend of port.frontends) builder.frontend(frontend);
  builder.counted.push(...hairpinsOf(port));
  return builder;
}

/** Endpoints of this node that may dial themselves. Other service ports may have the same. */
export function hairpinsOf({ localEndpoints = [], protocol }: ServicePortPlan): readonly Element[] {
  return localEndpoints.map(({ ip, port }) => ({
    set: NFT_SETS.hairpin,
    key: { address: ip, protocol, secondAddress: ip, port },
  }));
}

class Builder implements NftFragment {
  readonly elements: Element[] = [];
  readonly counted: Element[] = [];
  readonly pools: PoolSize[] = [];
  readonly affinity: AffinityTimeout | undefined;
  readonly #port: ServicePortPlan;
  readonly #options: ElementOptions;
  readonly #isWhole: boolean;
  readonly #comment: string;
  readonly #sourceRanges = new Map<AllowedSources, readonly Cidr[]>();

  constructor(port: ServicePortPlan, options: ElementOptions, isWhole: boolean) {
    this.#port = port;
    this.#options = options;
    this.#isWhole = isWhole;
    this.#comment = ownerComment(port.name);
    const { affinitySeconds: seconds, protocol } = port;
    this.affinity = seconds === undefined ? undefined : { protocol, seconds };
  }

  frontend(frontend: Frontend): void {
    const { address, port } = frontend;
    const { protocol } = this.#port;
    if (address === undefined) {
      this.#served('nodePort', { protocol, port }, frontend);
      this.#sticky(this.#options.nodePortIps, port);
      this.#connections('nodePort', this.#options.nodePortIps, frontend);
      return;
    }
    this.counted.push({ set: NFT_SETS.serviceIPs, key: { address } });
    if (frontend.kind === 'clusterIP') this.counted.push({ set: NFT_SETS.clusterIPs, key: { address } });
    this.#served('address', { address, protocol, port }, frontend);
    this.#sources(address, frontend);
    this.#sticky([address], port);
    this.#connections('address', [address], frontend);
  }

  /** Which endpoints, seen from where; or why none. */
  #served(scope: Scope, key: ElementKey, { routes }: Frontend): void {
    const { pod, node, outside } = routes;
    const names = SCOPES[scope];
    if (isMasqueraded(pod) && isMasqueraded(outside)) this.#add(names.masqueradeAlways, key);
    else if (isMasqueraded(outside)) this.#add(names.masqueradeOthers, key);
    else if (isMasqueraded(node)) this.#add(names.masqueradeNode, key);
    const inside = pod.verdict === 'forward' ? pod : node;
    if (inside.verdict === 'forward') {
      this.#pool(scope, 'any', key, this.#port.pools[inside.pool] ?? []);
      if (outside.verdict === 'drop') this.#add(names.droppedOutside, key);
      else if (outside.verdict === 'forward' && outside.pool !== inside.pool)
        this.#pool(scope, 'outside', key, this.#port.pools[outside.pool] ?? []);
    } else if (outside.verdict === 'forward') {
      this.#pool(scope, 'outside', key, this.#port.pools[outside.pool] ?? []);
    }
    if (this.#port.affinitySeconds !== undefined) this.#add(names.remembering, key);
    if (inside.verdict === 'reject') this.#add(names.refused, key);
    if (inside.verdict === 'drop') this.#add(names.dropped, key);
  }

  #pool(scope: Scope, view: View, key: ElementKey, pool: Pool): void {
    const size = pool.length;
    const set = poolMap(scope, view, size);
    this.pools.push({ scope, view, size });
    if (!this.#isWhole) return;
    let index = 0;
    for (const endpoint of pool) {
      this.elements.push({
        set,
        key: size === 1 ? key : { ...key, index },
        comment: this.#comment,
        endpoint,
      });
      index++;
    }
    if (size > LARGEST_DIRECT_POOL)
      this.elements.push({
        set: largeMap(scope, view),
        key,
        chain: largeChain(scope, view, size),
        comment: this.#comment,
      });
  }

  #sources(address: Ip, { allowedSources, port }: Frontend): void {
    if (!allowedSources) return;
    const { protocol } = this.#port;
    const key: ElementKey = { address, protocol, port };
    this.#add(SCOPES.address.restricted, key);
    if (!this.#isWhole) return;
    let ranges = this.#sourceRanges.get(allowedSources);
    if (!ranges) this.#sourceRanges.set(allowedSources, (ranges = sourcesOf(allowedSources)));
    for (const range of ranges) this.#add(NFT_SETS.allowed, { ...key, range });
  }

  #sticky(addresses: readonly Ip[], port: number): void {
    const { affinitySeconds, protocol } = this.#port;
    if (affinitySeconds === undefined) return;
    const set = stickyMap(protocol);
    const chain = stickyChain(protocol, affinitySeconds);
    for (const address of addresses)
      this.counted.push({ set, key: { address, port }, chain, comment: this.#comment });
  }

  /** A client with an affinity entry passes its pool by. */
  #connections(scope: Scope, addresses: readonly Ip[], { port: secondPort, routes }: Frontend): void {
    const { affinitySeconds, protocol } = this.#port;
    if (affinitySeconds === undefined || !this.#options.counters || !this.#isWhole) return;
    const set = connectionsSet(scope, protocol);
    for (const { ip, port } of this.#endpointsOf(routes))
      for (const secondAddress of addresses) this.#add(set, { address: ip, port, secondAddress, secondPort });
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
    if (this.#isWhole) this.elements.push({ set, key, comment: this.#comment });
  }
}

function isMasqueraded(route: Route): boolean {
  return route.verdict === 'forward' && route.masquerade;
}

function sourcesOf({ ranges, hosts }: AllowedSources): readonly Cidr[] {
  return withoutCovered([...ranges, ...hosts.map(hostCidr)]);
}

/**
 * Those that say it all, by where they begin. Two networks are apart, or one lies within the other; so in this order only
 * the last one that was kept can hold the next.
 */
export function withoutCovered(ranges: Iterable<Cidr>): readonly Cidr[] {
  const sorted = [...new Set(ranges)]
    .map((range) => ({ range, start: startOf(range), prefix: prefixOf(range) }))
    .sort((a, b) => (a.start < b.start ? -1 : a.start > b.start ? 1 : a.prefix - b.prefix));
  const kept: Cidr[] = [];
  let last: Cidr | undefined;
  for (const { range } of sorted) {
    if (last !== undefined && covers(last, range)) continue;
    kept.push(range);
    last = range;
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
function covers(wider: Cidr, range: Cidr): boolean {
  return cidrContains(wider, addressOf(range));
}

function addressOf(range: Cidr): Ip {
  return range.slice(0, range.indexOf('/')) as Ip;
}
