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
const PARTS = 3;

export class PackedSlice implements EndpointSlice {
  readonly namespace: string;
  readonly name: string;
  readonly service: string;
  readonly family: Family;
  readonly ports: readonly SlicePort[];
  readonly triggerTime: number | undefined;
  /** Address, name of the pod and state of the first endpoint, then those of the next. Not private: equality reads it. */
  readonly packed: readonly Packed[number][];

  /** `share` returns one copy of each state. */
  constructor(slice: EndpointSlice, share: (state: EndpointState) => EndpointState) {
    const { endpoints } = slice;
    this.namespace = slice.namespace;
    this.name = slice.name;
    this.service = slice.service;
    this.family = slice.family;
    this.ports = slice.ports;
    this.triggerTime = slice.triggerTime;
    const packed: Packed[number][] = [];
    for (const { ip, pod, ...state } of endpoints) packed.push(ip, pod, share(state));
    this.packed = packed.slice(); // without the room that push leaves
  }

  get endpointCount(): number {
    return this.packed.length / PARTS;
  }

  get endpoints(): readonly SliceEndpoint[] {
    const { packed } = this;
    return Array.from({ length: this.endpointCount }, (_, index) => {
      const at = index * PARTS;
      return unpacked(packed.slice(at, at + PARTS) as unknown as Packed);
    });
  }
}

function unpacked([ip, pod, state]: Packed): SliceEndpoint {
  const { nodeName, ready, serving, terminating, zoneHints, nodeHints, zone } = state;
  const common = { ip, nodeName, ready, serving, terminating, zoneHints, nodeHints };
  if (pod === undefined) return zone === undefined ? common : { ...common, zone };
  return zone === undefined ? { ...common, pod } : { ...common, pod, zone };
}

/** How many endpoints a slice has, without making them. */
export function endpointCountOf(slice: EndpointSlice): number {
  return slice instanceof PackedSlice ? slice.endpointCount : slice.endpoints.length;
}
