/** Endpoints of a service, merged from all its slices. */
import { hostPort, type Ip } from './ip.ts';
import type { EndpointSlice, Protocol, SliceEndpoint } from './objects.ts';

export interface Endpoint {
  readonly ip: Ip;
  readonly port: number;
  /** `10.0.0.1:80`, `[fd00::1]:80`: its identity. */
  readonly key: string;
  readonly isLocal: boolean;
  readonly ready: boolean;
  readonly serving: boolean;
  readonly terminating: boolean;
  readonly zoneHints: readonly string[];
  readonly nodeHints: readonly string[];
}

/** `port name/protocol`: which port of the service an endpoint belongs to. */
export type PortKey = string & { readonly __portKey?: true };

export function portKey(portName: string, protocol: Protocol): PortKey {
  return `${portName}/${protocol}`;
}

export type EndpointsByPort = ReadonlyMap<PortKey, readonly Endpoint[]>;

/** What of a service's slices is merged; without a limit, everything. */
export interface MergeLimits {
  /** Of these ports alone. A slice may have 20,000 ports and 1,000 endpoints, whatever its service has. */
  readonly ports?: ReadonlySet<PortKey>;
  /** How many endpoints are looked at for each port: ready ones on this node first, then other ready ones. */
  readonly perPort?: number;
}

/** Merges slices into one list per port, sorted by `key`. A port without endpoints is absent. */
export function mergeSlices(
  slices: Iterable<EndpointSlice>,
  nodeName: string,
  { ports, perPort = Number.POSITIVE_INFINITY }: MergeLimits = {},
): EndpointsByPort {
  const merged = new Map<PortKey, Map<string, Endpoint>>();
  const seen = new Map<PortKey, number>();
  for (const slice of inOrder(slices, nodeName, perPort)) {
    if (slice.endpoints.length === 0) continue;
    for (const port of slice.ports) {
      const key = portKey(port.name, port.protocol);
      if (ports && !ports.has(key)) continue;
      const before = seen.get(key) ?? 0;
      if (before >= perPort) continue;
      seen.set(key, before + slice.endpoints.length);
      let endpoints = merged.get(key);
      if (!endpoints) merged.set(key, (endpoints = new Map()));
      for (const sliceEndpoint of firstOf(slice.endpoints, perPort - before)) {
        const endpoint = toEndpoint(sliceEndpoint, port.port, nodeName);
        // A running pod beats a terminating one that had the same address.
        if (!endpoint.terminating || !endpoints.has(endpoint.key)) endpoints.set(endpoint.key, endpoint);
      }
    }
  }
  const result = new Map<PortKey, readonly Endpoint[]>();
  for (const [key, endpoints] of merged) result.set(key, [...endpoints.values()].sort(byKey));
  return result;
}

/** All endpoints of these slices, each counted once however many ports it has. */
export function countEndpoints(slices: Iterable<EndpointSlice>): number {
  let count = 0;
  for (const slice of slices) count += slice.endpoints.length;
  return count;
}

type SlicePart = Pick<EndpointSlice, 'ports' | 'endpoints'>;

/**
 * By name, so that a restarted process decides the same about an endpoint that is in two slices. Where not all of them can
 * be had, the ready ones come first, and of these the ones on this node.
 */
function inOrder(slices: Iterable<EndpointSlice>, nodeName: string, perPort: number): readonly SlicePart[] {
  const sorted = [...slices].sort(byName);
  if (countEndpoints(sorted) <= perPort) return sorted;
  const ranks: readonly SlicePart[][] = [[], [], []];
  for (const { ports, endpoints } of sorted) {
    const parts: readonly SliceEndpoint[][] = [[], [], []];
    for (const endpoint of endpoints) parts[rankOf(endpoint, nodeName)]?.push(endpoint);
    for (const [rank, part] of parts.entries()) ranks[rank]?.push({ ports, endpoints: part });
  }
  return ranks.flat();
}

function rankOf(endpoint: SliceEndpoint, nodeName: string): 0 | 1 | 2 {
  if (!endpoint.ready) return 2;
  return nodeName !== '' && endpoint.nodeName === nodeName ? 0 : 1;
}

function firstOf<T>(items: readonly T[], count: number): readonly T[] {
  return items.length <= count ? items : items.slice(0, count);
}

function toEndpoint(endpoint: SliceEndpoint, port: number, nodeName: string): Endpoint {
  return {
    ip: endpoint.ip,
    port,
    key: hostPort(endpoint.ip, port),
    isLocal: nodeName !== '' && endpoint.nodeName === nodeName,
    ready: endpoint.ready,
    serving: endpoint.serving,
    terminating: endpoint.terminating,
    zoneHints: endpoint.zoneHints,
    nodeHints: endpoint.nodeHints,
  };
}

function byName(a: EndpointSlice, b: EndpointSlice): number {
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
}

function byKey(a: Endpoint, b: Endpoint): number {
  return a.key < b.key ? -1 : a.key > b.key ? 1 : 0;
}
