/**
 * An EndpointSlice in a third of the memory: of each endpoint its address and its pod's name are kept, and a state that
 * thousands of endpoints share. Endpoints are made when they are asked for, which is when their service is planned or
 * explained.
 */
import type { Family, Ip } from './ip.ts';
import type { EndpointSlice, SliceEndpoint, SlicePort } from './objects.ts';

/** What of an endpoint is the same for many: all but who it is. */
export type EndpointState = Omit<SliceEndpoint, 'ip' | 'pod'>;

/** Of one endpoint. */
type Packed = readonly [ip: Ip, pod: string | undefined, state: EndpointState];
/** Address, name of the pod and state of the first endpoint, then those of the next. */
export type PackedEndpoints = readonly Packed[number][];
const PARTS = 3;

export class PackedSlice implements EndpointSlice {
  readonly namespace: string;
  readonly name: string;
  readonly service: string;
  readonly family: Family;
  readonly ports: readonly SlicePort[];
  readonly triggerTime: number | undefined;
  /** Not private: equality reads it. */
  readonly packed: PackedEndpoints;

  constructor(slice: Omit<EndpointSlice, 'endpoints'>, packed: PackedEndpoints) {
    this.namespace = slice.namespace;
    this.name = slice.name;
    this.service = slice.service;
    this.family = slice.family;
    this.ports = slice.ports;
    this.triggerTime = slice.triggerTime;
    this.packed = packed.slice(); // without the room that push leaves
  }

  /** `share` returns one copy of each state. */
  static of(slice: EndpointSlice, share: (state: EndpointState) => EndpointState): PackedSlice {
    const packed: Packed[number][] = [];
    for (const { ip, pod, ...state } of slice.endpoints) packed.push(ip, pod, share(state));
    return new PackedSlice(slice, packed);
  }

  get endpointCount(): number {
    return this.packed.length / PARTS;
  }

  get endpoints(): readonly SliceEndpoint[] {
    const endpoints: SliceEndpoint[] = [];
    this.forEach((...packed) => endpoints.push(unpacked(...packed)));
    return endpoints;
  }

  /** Without making endpoints. */
  forEach(visit: (...endpoint: Packed) => void): void {
    const { packed } = this;
    // What is at each place is what the constructor put there.
    for (let at = 0; at < packed.length; at += PARTS)
      visit(packed[at] as Ip, packed[at + 1] as string | undefined, packed[at + 2] as EndpointState);
  }
}

/** One literal for each shape: copies with `...` took most of the time. */
function unpacked(ip: Ip, pod: string | undefined, state: EndpointState): SliceEndpoint {
  const { nodeName, ready, serving, terminating, zoneHints, nodeHints, zone } = state;
  if (pod === undefined)
    return zone === undefined
      ? { ip, nodeName, ready, serving, terminating, zoneHints, nodeHints }
      : { ip, nodeName, ready, serving, terminating, zoneHints, nodeHints, zone };
  return zone === undefined
    ? { ip, nodeName, ready, serving, terminating, zoneHints, nodeHints, pod }
    : { ip, nodeName, ready, serving, terminating, zoneHints, nodeHints, pod, zone };
}

/** What counting needs of each endpoint, without making it. */
export function forEachState(
  slice: Pick<EndpointSlice, 'endpoints'>,
  visit: (ip: Ip, state: EndpointState) => void,
): void {
  if (slice instanceof PackedSlice) slice.forEach((ip, _, state) => visit(ip, state));
  else for (const endpoint of slice.endpoints) visit(endpoint.ip, endpoint);
}

/** How many endpoints a slice has, without making them. */
export function endpointCountOf(slice: Pick<EndpointSlice, 'endpoints'>): number {
  return slice instanceof PackedSlice ? slice.endpointCount : slice.endpoints.length;
}
