/**
 * The ring of recent changes of one family: what changed about a service, when it was seen, planned and committed, and what
 * the service was made from before and after. So a question about a time in the past can be answered.
 *
 * A sync notes references, and nothing else; words are made afterwards, in time slices. Inputs are immutable and shared with
 * the trackers: an entry keeps alive what was replaced, and only that counts as its size.
 */
import type { HistoryStatus } from '../explain/status.ts';
import type { ChangeRecord } from '../explain/types.ts';
import { describeService, describeSlice } from '../model/describeChange.ts';
import type { Family } from '../model/ip.ts';
import type { EndpointSlice, ObjectKey } from '../model/objects.ts';
import { endpointCountOf } from '../model/packedSlice.ts';
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

interface Entry extends Omit<PlannedChange, 'changes'> {
  readonly id: number;
  readonly seenAt: number;
  readonly plannedAt: number;
  committedAt: number | undefined;
  refused: string | undefined;
  /** Until words are made of them. */
  changes: readonly PlanChange[];
  /** Service ports that are not written yet. */
  readonly unwritten: Set<ServicePortId>;
  words: Pick<ChangeRecord, 'causes' | 'effects'> | undefined;
  readonly bytes: number;
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
  readonly mostRecords?: number;
  readonly mostBytes?: number;
}

const MOST_RECORDS = 2000;
const MOST_BYTES = 8 * 1024 * 1024;
/** About what V8 takes, measured with heap snapshots: an entry with its words, an endpoint of a slice, a service port. */
const ENTRY_BYTES = 900;
const ENDPOINT_BYTES = 220;
const SERVICE_PORT_BYTES = 500;
/** Words of one entry. */
const MOST_WORDS = 12;
/** Work beside syncs: none may wait for it for long. */
const SLICE_MS = 2;

export class ChangeHistory {
  readonly #options: ChangeHistoryOptions;
  readonly #mostRecords: number;
  readonly #mostBytes: number;
  /** Oldest first. */
  readonly #entries: Entry[] = [];
  readonly #unwritten = new Map<ServicePortId, Entry[]>();
  readonly #seenAt = new Map<ObjectKey, number>();
  readonly #wordless: Entry[] = [];
  #isDescribing = false;
  #bytes = 0;
  #since: number;

  constructor(options: ChangeHistoryOptions) {
    this.#options = options;
    this.#mostRecords = options.mostRecords ?? MOST_RECORDS;
    this.#mostBytes = options.mostBytes ?? MOST_BYTES;
    this.#since = options.wallTime();
  }

  /** What came before is not kept: the first services are in the kernel. */
  begin(): void {
    this.#since = this.#options.wallTime();
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
      ...change,
      id: this.#options.nextId(),
      seenAt: this.#seenAt.get(service) ?? now,
      plannedAt: now,
      committedAt: undefined,
      refused: undefined,
      unwritten: new Set(changes.map(({ id }) => id)),
      words: undefined,
      bytes: sizeOf(change),
      isDropped: false,
    };
    this.#seenAt.delete(service);
    this.#entries.push(entry);
    this.#bytes += entry.bytes;
    for (const { id } of changes) {
      const waiting = this.#unwritten.get(id);
      if (waiting) waiting.push(entry);
      else this.#unwritten.set(id, [entry]);
    }
    if (entry.unwritten.size === 0) this.#committed(entry, now);
    while (this.#entries.length > this.#mostRecords || this.#bytes > this.#mostBytes) this.#drop();
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

  /**
   * What services were made from at that time, as far as it differs from now: those of which a later change is known.
   * `undefined`: before the oldest that is known.
   */
  at(time: number): ReadonlyMap<ObjectKey, ServiceInputs> | undefined {
    if (time < this.#since) return undefined;
    const then = new Map<ObjectKey, ServiceInputs>();
    for (const { service, before, committedAt = Number.POSITIVE_INFINITY } of this.#entries)
      if (committedAt > time && !then.has(service)) then.set(service, before);
    return then;
  }

  /** What services were made from before each change, and until when. Oldest first. */
  *pasts(): Generator<{
    readonly service: ObjectKey;
    readonly before: ServiceInputs;
    readonly until: number;
  }> {
    // A copy: whoever reads may take a while, and the ring goes on.
    for (const { service, before, committedAt } of this.#entries.slice())
      yield { service, before, until: committedAt ?? Number.MAX_SAFE_INTEGER };
  }

  get status(): HistoryStatus {
    return {
      records: this.#entries.length,
      mostRecords: this.#mostRecords,
      bytes: this.#bytes,
      mostBytes: this.#mostBytes,
      since: this.#since,
    };
  }

  #drop(): void {
    const oldest = this.#entries.shift();
    if (!oldest) return;
    oldest.isDropped = true;
    this.#bytes -= oldest.bytes;
    this.#since = Math.max(this.#since, oldest.committedAt ?? oldest.plannedAt);
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
    entry.words ??= { causes: causesOf(entry), effects: effectsOf(entry.changes) };
    // Plans of the past hold all their endpoints, and the words say what differs.
    if (committedAt !== undefined) entry.changes = [];
    return {
      id,
      family: this.#options.family,
      service,
      ...entry.words,
      seenAt,
      plannedAt,
      ...(committedAt !== undefined && { committedAt }),
      ...(refused !== undefined && { refused }),
    };
  }
}

function causesOf({ service, before, after, viewCause }: Omit<PlannedChange, 'changes'>): readonly string[] {
  const causes: string[] = viewCause === undefined ? [] : [viewCause];
  if (before.ports !== after.ports)
    causes.push(describeService(service, { previous: before.ports, current: after.ports }));
  const old = new Map(before.slices.map((slice) => [slice.name, slice]));
  for (const slice of after.slices) {
    const previous = old.get(slice.name);
    old.delete(slice.name);
    if (previous !== slice) causes.push(...some(describeSlice(previous, slice)));
  }
  for (const slice of old.values()) causes.push(...some(describeSlice(slice, undefined)));
  return shortened(causes);
}

function some(text: string | undefined): readonly string[] {
  return text === undefined ? [] : [text];
}

function effectsOf(changes: readonly PlanChange[]): readonly string[] {
  const effects: string[] = [];
  for (const change of changes) {
    effects.push(...describePlanChange(change));
    if (effects.length > 4 * MOST_WORDS) break;
  }
  return shortened(effects, changes.length);
}

function shortened(words: readonly string[], atLeast = 0): readonly string[] {
  if (words.length <= MOST_WORDS) return words;
  return [...words.slice(0, MOST_WORDS), `and ${Math.max(words.length, atLeast) - MOST_WORDS} more`];
}

/** What it keeps alive: slices and ports that were replaced. */
function sizeOf({ before, after }: PlannedChange): number {
  const kept = new Set(after.slices);
  let bytes = ENTRY_BYTES;
  for (const slice of before.slices)
    if (!kept.has(slice)) bytes += ENDPOINT_BYTES * (endpointCountOf(slice) + slice.ports.length);
  if (before.ports !== after.ports) bytes += SERVICE_PORT_BYTES * before.ports.length;
  return bytes;
}
