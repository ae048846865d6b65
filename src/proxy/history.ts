/**
 * The ring of recent changes of one family: what changed about a service, and when it was seen, planned and committed.
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

interface Entry {
  readonly id: number;
  readonly service: ObjectKey;
  readonly seenAt: number;
  readonly plannedAt: number;
  committedAt: number | undefined;
  refused: string | undefined;
  /** Service ports that are not written yet. */
  readonly unwritten: Set<ServicePortId>;
  /** A change, until it is committed and in words: it keeps objects alive that were replaced. */
  words: PlannedChange | Pick<ChangeRecord, 'causes' | 'effects'>;
  isDropped: boolean;
}

interface ChangeHistoryOptions {
  readonly family: Family;
  readonly clock: Clock;
  /** Milliseconds since the epoch. */
  readonly wallTime: () => number;
  /** Numbers for records, of all families. */
  readonly nextId: () => number;
  /** Called when one is committed, and in words. */
  readonly onRecord?: (record: ChangeRecord) => void;
}

const MAX_RECORDS = 1000;
/** Words of one entry. */
const MAX_WORDS = 12;
/** Work beside syncs: none may wait for it for long. */
const SLICE_MS = 2;

export class ChangeHistory {
  readonly #options: ChangeHistoryOptions;
  /** Oldest first. */
  readonly #entries: Entry[] = [];
  readonly #unwritten = new Map<ServicePortId, Entry[]>();
  readonly #seenAt = new Map<ObjectKey, number>();
  readonly #wordless: Entry[] = [];
  #isDescribing = false;

  constructor(options: ChangeHistoryOptions) {
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
    const { service, changes } = change;
    const now = this.#options.wallTime();
    const entry: Entry = {
      id: this.#options.nextId(),
      service,
      seenAt: this.#seenAt.get(service) ?? now,
      plannedAt: now,
      committedAt: undefined,
      refused: undefined,
      unwritten: new Set(changes.map(({ id }) => id)),
      words: change,
      isDropped: false,
    };
    this.#seenAt.delete(service);
    this.#entries.push(entry);
    for (const { id } of changes) {
      const waiting = this.#unwritten.get(id);
      if (waiting) waiting.push(entry);
      else this.#unwritten.set(id, [entry]);
    }
    if (entry.unwritten.size === 0) this.#committed(entry, now);
    if (this.#entries.length > MAX_RECORDS) this.#drop();
  }

  /** The kernel has these service ports now, or refused them. Returns when the oldest change among them was seen. */
  written(ids: Iterable<ServicePortId>, refused: ReadonlyMap<ServicePortId, Error>): number | undefined {
    const now = this.#options.wallTime();
    let oldest: number | undefined;
    for (const id of ids) {
      const waiting = this.#unwritten.get(id);
      if (!waiting) continue;
      this.#unwritten.delete(id);
      for (const entry of waiting) {
        if (oldest === undefined || entry.seenAt < oldest) oldest = entry.seenAt;
        entry.unwritten.delete(id);
        entry.refused ??= refused.get(id)?.message;
        if (entry.unwritten.size === 0) this.#committed(entry, now);
      }
    }
    return oldest;
  }

  /** Newest first; of one service, or of all. */
  records(service?: ObjectKey): readonly ChangeRecord[] {
    return this.#entries
      .filter((entry) => service === undefined || entry.service === service)
      .map((entry) => this.#recordOf(entry))
      .toReversed();
  }

  #drop(): void {
    const oldest = this.#entries.shift();
    if (!oldest) return;
    oldest.isDropped = true;
    for (const id of oldest.unwritten) {
      const others = this.#unwritten.get(id)?.filter((entry) => entry !== oldest) ?? [];
      if (others.length > 0) this.#unwritten.set(id, others);
      else this.#unwritten.delete(id);
    }
  }

  #committed(entry: Entry, now: number): void {
    entry.committedAt = now;
    this.#wordless.push(entry);
    if (this.#isDescribing) return;
    this.#isDescribing = true;
    void this.#describeAll();
  }

  async #describeAll(): Promise<void> {
    const { clock, onRecord } = this.#options;
    const describe = (entry: Entry): void => {
      if (!entry.isDropped) onRecord?.(this.#recordOf(entry));
    };
    const timeSlice = new TimeSlice(clock, SLICE_MS);
    await timeSlice.turn();
    // What is added meanwhile is taken too.
    await forEachSliced(this.#wordless, describe, timeSlice);
    this.#wordless.length = 0;
    this.#isDescribing = false;
  }

  #recordOf(entry: Entry): ChangeRecord {
    const { id, service, seenAt, plannedAt, committedAt, refused } = entry;
    const words =
      'causes' in entry.words
        ? entry.words
        : { causes: causesOf(entry.words), effects: effectsOf(entry.words.changes) };
    if (committedAt !== undefined) entry.words = words;
    return {
      id,
      family: this.#options.family,
      service,
      ...words,
      seenAt,
      plannedAt,
      ...(committedAt !== undefined && { committedAt }),
      ...(refused !== undefined && { refused }),
    };
  }
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
