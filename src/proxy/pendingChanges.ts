/**
 * What changed about a service and is not in the kernel yet. When it is, a record of it is emitted, with when it was seen,
 * planned and committed.
 *
 * A sync notes references, and nothing else; words are made afterwards, in time slices.
 */
import type { ChangeRecord } from '../explain/types.ts';
import { describeService, describeSlice } from '../model/describeChange.ts';
import type { Family } from '../model/ip.ts';
import type { EndpointSlice, ObjectKey } from '../model/objects.ts';
import type { ServicePort, ServicePortId } from '../model/serviceTracker.ts';
import { describePlanChange } from '../plan/describePlan.ts';
import type { PlanChange } from '../plan/types.ts';
import type { Clock } from '../time/clock.ts';
import { forEachSliced, TimeSlice } from '../time/timeSlice.ts';

/** What a service is planned from. */
export interface ServiceInputs {
  readonly ports: readonly ServicePort[];
  readonly slices: readonly EndpointSlice[];
}

/** One service's part of a replanning. */
interface PlannedChange {
  readonly service: ObjectKey;
  readonly before: ServiceInputs;
  readonly after: ServiceInputs;
  readonly changes: readonly PlanChange[];
  /** The node or the configuration changed, too: in words. */
  readonly viewCause?: string | undefined;
}

interface Pending {
  readonly change: PlannedChange;
  readonly seenAt: number;
  readonly plannedAt: number;
  /** Service ports that are not written yet. */
  readonly unwritten: Set<ServicePortId>;
  refused: string | undefined;
}

interface Committed {
  readonly pending: Pending;
  readonly at: number;
}

interface PendingChangesOptions {
  readonly family: Family;
  readonly clock: Clock;
  /** Milliseconds since the epoch. */
  readonly wallTime: () => number;
  /** Numbers for records, of all families. */
  readonly nextId: () => number;
  /** Called after the sync that committed it. */
  readonly onRecord: (record: ChangeRecord) => void;
}

/** Words of one record. */
const MAX_WORDS = 12;
/** Work beside syncs: none may wait for it for long. */
const SLICE_MS = 2;

export class PendingChanges {
  readonly #options: PendingChangesOptions;
  readonly #byService = new Map<ObjectKey, Pending>();
  readonly #byPort = new Map<ServicePortId, Pending>();
  readonly #seenAt = new Map<ObjectKey, number>();
  readonly #committed: Committed[] = [];
  #isDescribing = false;

  constructor(options: PendingChangesOptions) {
    this.#options = options;
  }

  /** What came before is not kept: the first services are in the kernel. */
  begin(): void {
    this.#seenAt.clear();
  }

  /** An object of the service changed; of several changes before a sync, the first counts. */
  seen(service: ObjectKey): void {
    if (!this.#seenAt.has(service)) this.#seenAt.set(service, this.#options.wallTime());
  }

  /** What was seen was taken back. */
  unchanged(service: ObjectKey): void {
    this.#seenAt.delete(service);
  }

  planned(change: PlannedChange): void {
    const { service } = change;
    const now = this.#options.wallTime();
    const before = this.#byService.get(service);
    const seenAt = this.#seenAt.get(service) ?? now;
    this.#seenAt.delete(service);
    const ids = change.changes.map(({ id }) => id);
    const pending: Pending = {
      change: before ? joined(before.change, change) : change,
      seenAt: before?.seenAt ?? seenAt,
      plannedAt: before?.plannedAt ?? now,
      unwritten: new Set([...(before?.unwritten ?? []), ...ids]),
      refused: undefined,
    };
    this.#byService.set(service, pending);
    for (const id of pending.unwritten) this.#byPort.set(id, pending);
    if (pending.unwritten.size === 0) this.#commit(pending, now);
  }

  /** The kernel has these service ports now, or refused them. Returns when the oldest change among them was seen. */
  written(ids: Iterable<ServicePortId>, refused: ReadonlyMap<ServicePortId, Error>): number | undefined {
    const now = this.#options.wallTime();
    let oldest: number | undefined;
    for (const id of ids) {
      const pending = this.#byPort.get(id);
      if (!pending) continue;
      this.#byPort.delete(id);
      if (oldest === undefined || pending.seenAt < oldest) oldest = pending.seenAt;
      pending.unwritten.delete(id);
      pending.refused ??= refused.get(id)?.message;
      if (pending.unwritten.size === 0) this.#commit(pending, now);
    }
    return oldest;
  }

  #commit(pending: Pending, at: number): void {
    this.#byService.delete(pending.change.service);
    this.#committed.push({ pending, at });
    if (this.#isDescribing) return;
    this.#isDescribing = true;
    void this.#describeAll();
  }

  async #describeAll(): Promise<void> {
    const { clock, family, nextId, onRecord } = this.#options;
    const timeSlice = new TimeSlice(clock, SLICE_MS);
    await timeSlice.turn();
    const describe = ({ pending, at }: Committed): void => {
      const { change, seenAt, plannedAt, refused } = pending;
      onRecord({
        id: nextId(),
        family,
        service: change.service,
        causes: causesOf(change),
        effects: effectsOf(change.changes),
        seenAt,
        plannedAt,
        committedAt: at,
        ...(refused !== undefined && { refused }),
      });
    };
    // What is added meanwhile is taken too.
    await forEachSliced(this.#committed, describe, timeSlice);
    this.#committed.length = 0;
    this.#isDescribing = false;
  }
}

/** A service that changed again before it was written: from what the kernel has to what it will have. */
function joined(first: PlannedChange, second: PlannedChange): PlannedChange {
  const changes = new Map(first.changes.map((change) => [change.id, change]));
  for (const change of second.changes) {
    const previous = (changes.get(change.id) ?? change).previous;
    changes.set(change.id, { ...change, previous });
  }
  const viewCause = second.viewCause ?? first.viewCause;
  return { ...second, before: first.before, changes: [...changes.values()], viewCause };
}

function causesOf({ service, before, after, viewCause }: PlannedChange): readonly string[] {
  const causes: string[] = viewCause === undefined ? [] : [viewCause];
  if (before.ports !== after.ports)
    causes.push(describeService(service, { previous: before.ports, current: after.ports }));
  const old = new Map(before.slices.map((slice) => [slice.name, slice]));
  for (const slice of after.slices) {
    const previous = old.get(slice.name);
    old.delete(slice.name);
    if (previous !== slice) causes.push(describeSlice(previous, slice) ?? '');
  }
  for (const slice of old.values()) causes.push(describeSlice(slice, undefined) ?? '');
  return shortened(causes.filter((cause) => cause !== ''));
}

function effectsOf(changes: readonly PlanChange[]): readonly string[] {
  const effects: string[] = [];
  for (const change of changes) {
    effects.push(...describePlanChange(change));
    if (effects.length > 4 * MAX_WORDS) break;
  }
  return shortened(effects, changes.length);
}

function shortened(words: readonly string[], atLeast = 0): readonly string[] {
  if (words.length <= MAX_WORDS) return words;
  return [...words.slice(0, MAX_WORDS), `and ${Math.max(words.length, atLeast) - MAX_WORDS} more`];
}
