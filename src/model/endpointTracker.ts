/**
 * The EndpointSlice cache of one address family, and what changed in it between two syncs.
 *
 * Slices are kept per service twice: as applied at the last sync, and as pending. The merged endpoints of a service
 * are computed when they are asked for, so that nothing is stored twice.
 */
import { deepEqual } from './equal.ts';
import { type EndpointsByPort, mergeSlices } from './endpoint.ts';
import type { Family } from './ip.ts';
import { type EndpointSlice, type ObjectKey, objectKey } from './objects.ts';

export interface EndpointChange {
  readonly previous: EndpointsByPort;
  readonly current: EndpointsByPort;
}

type SlicesByName = ReadonlyMap<string, EndpointSlice>;
const NO_SLICES: SlicesByName = new Map();

export class EndpointTracker {
  readonly #family: Family;
  readonly #nodeName: string;
  readonly #applied = new Map<ObjectKey, SlicesByName>();
  readonly #pending = new Map<ObjectKey, Map<string, EndpointSlice | undefined>>();
  /** What the last `apply` handed out: whoever asks next asks for these, and merging is the costly part. */
  #latest: ReadonlyMap<ObjectKey, EndpointChange> = new Map();
  /** Which service a slice was last seen with: its label may change. */
  readonly #serviceOfSlice = new Map<ObjectKey, ObjectKey>();

  /** When the changes of each pending service were asked for, as their slices say. */
  #triggers = new Map<ObjectKey, number[]>();
  readonly #startedAt: number;

  /** `startedAt`: triggers from before then tell of changes that somebody else has applied. */
  constructor(family: Family, nodeName: string, startedAt = Number.POSITIVE_INFINITY) {
    this.#family = family;
    this.#nodeName = nodeName;
    this.#startedAt = startedAt;
  }

  /** Notes what a slice is now; `undefined`: it is gone. Answers whether this was a change. */
  update(namespace: string, name: string, slice: EndpointSlice | undefined): boolean {
    const ours = slice?.family === this.#family ? slice : undefined;
    const sliceKey = objectKey(namespace, name);
    const before = this.#serviceOfSlice.get(sliceKey);
    const now = ours && objectKey(namespace, ours.service);
    let changed = false;
    if (before !== undefined && before !== now) changed = this.#note(before, name, undefined);
    if (now !== undefined && ours) {
      this.#serviceOfSlice.set(sliceKey, now);
      changed = this.#note(now, name, ours) || changed;
    } else {
      this.#serviceOfSlice.delete(sliceKey);
    }
    return changed;
  }

  get pendingCount(): number {
    return this.#pending.size;
  }

  /** Trigger times of everything that was pending; each is handed out once. */
  takeTriggers(): readonly number[] {
    const triggers = [...this.#triggers.values()].flat();
    this.#triggers = new Map();
    return triggers;
  }

  /** The endpoints of a service as of the last `apply`. */
  endpointsOf(service: ObjectKey): EndpointsByPort {
    return this.#latest.get(service)?.current ?? this.#merge(this.#applied.get(service));
  }

  /** Services with slices that are not applied yet. */
  pendingServices(): readonly ObjectKey[] {
    return [...this.#pending.keys()];
  }

  /** Makes the pending slices of these services current; hands out those whose endpoints are not what they were. */
  apply(services: Iterable<ObjectKey> = this.pendingServices()): ReadonlyMap<ObjectKey, EndpointChange> {
    const changes = new Map<ObjectKey, EndpointChange>();
    for (const service of services) {
      const pending = this.#pending.get(service);
      if (!pending) continue;
      this.#pending.delete(service);
      const before = this.#applied.get(service);
      const after = withPending(before ?? NO_SLICES, pending);
      if (after.size > 0) this.#applied.set(service, after);
      else this.#applied.delete(service);
      const change = { previous: this.#merge(before), current: this.#merge(after) };
      if (!sameEndpoints(change.previous, change.current)) changes.set(service, change);
    }
    this.#latest = changes;
    return changes;
  }

  #merge(slices: SlicesByName | undefined): EndpointsByPort {
    return mergeSlices((slices ?? NO_SLICES).values(), this.#nodeName);
  }

  #note(service: ObjectKey, name: string, slice: EndpointSlice | undefined): boolean {
    const pending = this.#pending.get(service);
    const known = pending?.has(name) ? pending.get(name) : this.#applied.get(service)?.get(name);
    if (deepEqual(known, slice)) return false;
    if (pending) pending.set(name, slice);
    else this.#pending.set(service, new Map([[name, slice]]));
    this.#noteTrigger(service, slice);
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

function withPending(
  applied: SlicesByName,
  pending: ReadonlyMap<string, EndpointSlice | undefined>,
): SlicesByName {
  const slices = new Map(applied);
  for (const [name, slice] of pending) {
    if (slice) slices.set(name, slice);
    else slices.delete(name);
  }
  return slices;
}

function sameEndpoints(a: EndpointsByPort, b: EndpointsByPort): boolean {
  return a.size === b.size && [...a].every(([key, endpoints]) => deepEqual(endpoints, b.get(key)));
}
