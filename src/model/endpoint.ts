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

/** Merges slices into one list per port, sorted by `key`. A port without endpoints is absent. */
export function mergeSlices(slices: Iterable<EndpointSlice>, nodeName: string): EndpointsByPort {
  const merged = new Map<PortKey, Map<string, Endpoint>>();
  // By name, so that a restarted process decides the same about an endpoint that is in two slices.
  for (const slice of [...slices].sort(byName)) {
    for (const port of slice.ports) {
      if (slice.endpoints.length === 0) continue;
      const key = portKey(port.name, port.protocol);
      let endpoints = merged.get(key);
      if (!endpoints) merged.set(key, (endpoints = new Map()));
      for (const sliceEndpoint of slice.endpoints) {
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
