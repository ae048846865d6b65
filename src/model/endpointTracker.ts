/**
 * The EndpointSlice cache of one address family, and what changed in it between two syncs.
 *
 * Slices are kept per service twice: as applied at the last sync, and as pending. The merged endpoints of a service
 * are computed when they are asked for, so that nothing is stored twice, and only as many as are asked for.
 */
import { deepEqual } from './equal.ts';
import { compareEndpoints, conditionOf, isOn, PackedEndpoint } from './packedEndpoint.ts';
import { endpointCountOf, forEachState } from './packedSlice.ts';
import type { Family } from './ip.ts';
import {
  type EndpointSlice,
  type ObjectKey,
  objectKey,
  type Protocol,
  type SliceEndpoint,
} from './objects.ts';

type SlicesByKey = Pick<ReadonlyMap<ObjectKey, EndpointSlice>, 'size' | 'get' | 'values'>;
const NO_SLICES: SlicesByKey = new Map<ObjectKey, EndpointSlice>();

/** Most services have one slice, and a map of one takes five times as much. */
class OneSlice implements SlicesByKey {
  readonly size = 1;
  readonly #key: ObjectKey;
  readonly #slice: EndpointSlice;

  constructor(key: ObjectKey, slice: EndpointSlice) {
    this.#key = key;
    this.#slice = slice;
  }

  get(key: ObjectKey): EndpointSlice | undefined {
    return key === this.#key ? this.#slice : undefined;
  }

  values(): MapIterator<EndpointSlice> {
    return [this.#slice].values();
  }
}

export class EndpointTracker {
  readonly #family: Family;
  readonly #nodeName: string;
  readonly #applied = new Map<ObjectKey, SlicesByKey>();
  readonly #pending = new Map<ObjectKey, Map<ObjectKey, EndpointSlice | undefined>>();
  /** Which service a slice was last seen with: its label may change. */
  readonly #serviceOfSlice = new Map<ObjectKey, ObjectKey>();

  /** When the changes of each pending service were asked for, as their slices say. */
  readonly #triggers = new Map<ObjectKey, number[]>();
  readonly #startedAt: number;

  readonly #onPending: ((service: ObjectKey) => void) | undefined;

  /**
   * `startedAt`: triggers from before then belong to changes that were applied before. `onPending`: a slice of this service
   * is not what it was.
   */
  constructor(
    family: Family,
    nodeName: string,
    startedAt = Number.POSITIVE_INFINITY,
    onPending?: (service: ObjectKey) => void,
  ) {
    this.#family = family;
    this.#nodeName = nodeName;
    this.#startedAt = startedAt;
    this.#onPending = onPending;
  }

  /** Notes what a slice is now; `undefined`: it was deleted. Returns whether this was a change. */
  update(sliceKey: ObjectKey, slice: EndpointSlice | undefined): boolean {
    const ours = slice?.family === this.#family ? slice : undefined;
    const before = this.#serviceOfSlice.get(sliceKey);
    const service = ours && objectKey(ours.namespace, ours.service);
    const now = service === before ? before : service; // one copy of it
    let changed = false;
    if (before !== undefined && before !== now) changed = this.#note(before, sliceKey, undefined);
    if (now !== undefined && ours) {
      this.#serviceOfSlice.set(sliceKey, now);
      changed = this.#note(now, sliceKey, ours) || changed;
    } else {
      this.#serviceOfSlice.delete(sliceKey);
    }
    return changed;
  }

  get pendingCount(): number {
    return this.#pending.size;
  }

  /** Trigger times of what is pending for these services; each is handed out once. */
  takeTriggers(services: Iterable<ObjectKey> = [...this.#triggers.keys()]): readonly number[] {
    const triggers: number[] = [];
    for (const service of services) {
      for (const trigger of this.#triggers.get(service) ?? []) triggers.push(trigger);
      this.#triggers.delete(service);
    }
    return triggers;
  }

  /** The endpoints of a service as of the last `apply`. */
  endpointsOf(service: ObjectKey, limits?: MergeLimits): EndpointsByPort {
    return mergeSlices((this.#applied.get(service) ?? NO_SLICES).values(), this.#nodeName, limits);
  }

  /** The slices of a service as of the last `apply`. */
  slicesOf(service: ObjectKey): readonly EndpointSlice[] {
    return [...(this.#applied.get(service) ?? NO_SLICES).values()];
  }

  /** How many endpoints its slices have together. */
  endpointCountOf(service: ObjectKey): number {
    return countEndpoints((this.#applied.get(service) ?? NO_SLICES).values());
  }

  /** How many endpoints its slices have that are not applied yet. */
  pendingCountOf(service: ObjectKey): number {
    const pending = this.#pending.get(service);
    if (!pending) return 0;
    return countEndpoints([...pending.values()].flatMap((slice) => slice ?? []));
  }

  /** Services with slices that are not applied yet. */
  pendingServices(): readonly ObjectKey[] {
    return [...this.#pending.keys()];
  }

  /**
   * Makes the pending slices of a service current; returns whether a slice of it is not what it was. Whether an endpoint is
   * not, the plan finds out, which knows how many of them count. `onSlice` is called with every pending slice, as it was and
   * as it is.
   */
  apply(
    service: ObjectKey,
    onSlice?: (previous: EndpointSlice | undefined, current: EndpointSlice | undefined) => void,
  ): boolean {
    const pending = this.#pending.get(service);
    if (!pending) return false;
    this.#pending.delete(service);
    const before = this.#applied.get(service) ?? NO_SLICES;
    let isChanged = false;
    for (const [key, slice] of pending) {
      const previous = before.get(key);
      isChanged ||= !sameEndpoints(previous, slice);
      onSlice?.(previous, slice);
    }
    const after = withPending(before, pending);
    if (after.size > 0) this.#applied.set(service, after);
    else this.#applied.delete(service);
    return isChanged;
  }

  #note(service: ObjectKey, key: ObjectKey, slice: EndpointSlice | undefined): boolean {
    const pending = this.#pending.get(service);
    const known = pending?.has(key) ? pending.get(key) : this.#applied.get(service)?.get(key);
    if (deepEqual(known, slice)) return false;
    if (pending) pending.set(key, slice);
    else this.#pending.set(service, new Map([[key, slice]]));
    this.#noteTrigger(service, slice);
    this.#onPending?.(service);
    return true;
  }

  #noteTrigger(service: ObjectKey, slice: EndpointSlice | undefined): void {
    if (!slice) {
      this.#triggers.delete(service);
      return;
    }
    const { triggerTime } = slice;
    if (triggerTime === undefined || triggerTime <= this.#startedAt) return;
    const known = this.#triggers.get(service);
    if (known) known.push(triggerTime);
    else this.#triggers.set(service, [triggerTime]);
  }
}

/** Apart from when it changed. */
function sameEndpoints(a: EndpointSlice | undefined, b: EndpointSlice | undefined): boolean {
  if (!a || !b) return a === b;
  return deepEqual(a.ports, b.ports) && deepEqual(a.endpoints, b.endpoints);
}

function withPending(
  applied: SlicesByKey,
  pending: ReadonlyMap<string, EndpointSlice | undefined>,
): SlicesByKey {
  if (applied.size === 0 && pending.size === 1)
    for (const [key, slice] of pending) return slice ? new OneSlice(key, slice) : NO_SLICES;
  const slices = new Map<ObjectKey, EndpointSlice>();
  for (const slice of applied.values()) slices.set(objectKey(slice.namespace, slice.name), slice);
  for (const [key, slice] of pending) {
    if (slice) slices.set(key, slice);
    else slices.delete(key);
  }
  const [only] = slices;
  return slices.size === 1 && only ? new OneSlice(...only) : slices;
}

/** Endpoints of a service, merged from all its slices. */
export interface Endpoint extends Omit<SliceEndpoint, 'nodeName' | 'pod' | 'zone'> {
  readonly port: number;
  /** `10.0.0.1:80`, `[fd00::1]:80`: its identity. */
  readonly key: string;
  readonly isLocal: boolean;
}

/** `port name/protocol`: which port of the service an endpoint belongs to. */
export type PortKey = string;

export function portKey(portName: string, protocol: Protocol): PortKey {
  return `${portName}/${protocol}`;
}

export type EndpointsByPort = ReadonlyMap<PortKey, readonly Endpoint[]>;

/** What of a service's slices is merged; without a limit, everything. */
export interface MergeLimits {
  /** Of these ports alone. A slice may have 20,000 ports and 1,000 endpoints, whatever its service has. */
  readonly ports?: Pick<ReadonlySet<PortKey>, 'has'>;
  /** How many endpoints are looked at for each port: ready ones on this node first, then other ready ones. */
  readonly perPort?: number;
}

/** Merges slices into one list per port, sorted by `key`. A port without endpoints is absent. */
export function mergeSlices(
  slices: Iterable<EndpointSlice>,
  nodeName: string,
  { ports, perPort = Number.POSITIVE_INFINITY }: MergeLimits = {},
): EndpointsByPort {
  const merged = new Map<PortKey, Endpoint[]>();
  for (const part of inOrder(slices, nodeName, perPort)) {
    if (endpointCountOf(part) === 0) continue;
    for (const port of part.ports) {
      const key = portKey(port.name, port.protocol);
      if (ports && !ports.has(key)) continue;
      let endpoints = merged.get(key);
      if (!endpoints) merged.set(key, (endpoints = []));
      if (endpoints.length < perPort) addEndpoints(endpoints, part, port.port, nodeName, perPort);
    }
  }
  for (const [key, endpoints] of merged) merged.set(key, inKeyOrder(endpoints));
  return merged;
}

/** Up to so many in all. */
function addEndpoints(
  endpoints: Endpoint[],
  part: SlicePart,
  port: number,
  nodeName: string,
  most: number,
): void {
  const left = most - endpoints.length;
  const some = endpointCountOf(part) <= left ? part : { endpoints: part.endpoints.slice(0, left) };
  forEachState(some, (ip, state) => {
    endpoints.push(new PackedEndpoint(ip, port, conditionOf(state, isOn(nodeName, state))));
  });
}

/** A list of its own, without the room that a list has that has grown. Many slices are in order already. */
function inKeyOrder(endpoints: readonly Endpoint[]): Endpoint[] {
  for (let index = 1; index < endpoints.length; index++) {
    const [last, next] = [endpoints[index - 1], endpoints[index]];
    if (last && next && compareEndpoints(last, next) >= 0)
      return withoutRepeated(endpoints.toSorted(compareEndpoints));
  }
  return endpoints.slice();
}

/** Of those with one address, which are in the order of their slices: a running pod beats a terminating one. */
function withoutRepeated(sorted: Endpoint[]): Endpoint[] {
  let kept: Endpoint[] | undefined;
  for (const [index, endpoint] of sorted.entries()) {
    const last = kept ? kept.at(-1) : sorted[index - 1];
    const isRepeated = last !== undefined && compareEndpoints(last, endpoint) === 0;
    if (isRepeated) kept ??= sorted.slice(0, index);
    if (!isRepeated) kept?.push(endpoint);
    else if (!endpoint.terminating) kept?.splice(-1, 1, endpoint);
  }
  return kept?.slice() ?? sorted;
}

/** All endpoints of these slices, each counted once however many ports it has. */
function countEndpoints(slices: Iterable<EndpointSlice>): number {
  let count = 0;
  for (const slice of slices) count += endpointCountOf(slice);
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
  return isOn(nodeName, endpoint) ? 0 : 1;
}

function byName(a: EndpointSlice, b: EndpointSlice): number {
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
}
