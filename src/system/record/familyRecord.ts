/** One family's part of the record: what is to be written into it, and what is read back from it at a start. */
import type { Log } from '../../log/log.ts';
import type { Family } from '../../model/ip.ts';
import type { ServicePortId } from '../../model/serviceTracker.ts';
import { ByteWriter } from '../../plan/packedBytes.ts';
import { decodeServicePort, encodeServicePort } from '../../plan/portCodec.ts';
import type { ServicePortPlan } from '../../plan/types.ts';
import { forEachSliced, type TimeSlice } from '../../time/timeSlice.ts';
import { ENTRY, type Entry, type RecordSection, sectionPayload } from './journal.ts';

type Plans = ReadonlyMap<ServicePortId, ServicePortPlan>;

/** The rules of one family in the kernel, as far as a record is bound to them. */
export interface MarkedRules {
  /** The kernel's own numbers of what holds them; `undefined`: they are not there, or without this mark. */
  identity(mark: string): Promise<string | undefined>;
  /** Gives them this mark in place of another; `undefined`: none. */
  setMark(mark: string | undefined): Promise<void>;
}

/** The whole record, as one family needs it. */
export interface RecordKeeper {
  readonly mark: string | undefined;
  readonly isCurrent: boolean;
  readonly timeSlice: TimeSlice;
  section(family: Family): RecordSection | string;
  begin(): Promise<void> | undefined;
  flush(): void;
  touch(): void;
}

interface RestoredPlans {
  /** What is in the kernel; service ports that are still as they were have the new plan's objects. */
  readonly applied: Plans;
  /** Those that are not, or are gone. */
  readonly differing: readonly ServicePortId[];
  readonly withoutComments: ReadonlySet<ServicePortId>;
  readonly state: unknown;
  readonly isCurrent: boolean;
}

interface WrittenPlans {
  /** Service ports that may have changed. */
  readonly ids: Iterable<ServicePortId>;
  /** All, as they are written; it is looked at later too. */
  readonly applied: Plans;
  /** Their rules have no comments on endpoints. */
  readonly withoutComments: ReadonlySet<ServicePortId>;
  readonly options: unknown;
  readonly state: unknown;
  /** Everything was read back and is as it should be. */
  readonly isFull: boolean;
  /** Nothing was refused. */
  readonly isWhole: boolean;
}

/** How this process began, for people. */
type RecordStart =
  | { readonly servicePorts: number; readonly differed: number; readonly isCurrent: boolean }
  | { readonly why: string };

type EntryKind = (typeof ENTRY)[keyof typeof ENTRY];
type EncodeEntry = (writer: ByteWriter) => void;

export class FamilyRecord {
  readonly family: Family;
  /** Of the first sync. */
  start: RecordStart | undefined;
  hasBegun = false;
  /** The record has been looked at. */
  isRestored = false;
  /** Everything was compared with the kernel, or cannot have changed. */
  isVerified = false;
  readonly #keeper: RecordKeeper;
  readonly #rules: MarkedRules;
  readonly #log: Log;
  #isSyncing = false;
  /** A sync failed, or something was refused: what is in the kernel is not known exactly. */
  #isBroken = false;
  /** Another program changed something that is not repaired yet. */
  #isDoubted = false;
  #written: WrittenPlans | undefined;
  readonly #pending = new Set<ServicePortId>();
  /** Nothing of this family is in the file. */
  #isNew = true;
  #areFactsDue = true;
  #isMarkDue = true;
  #identity = '';
  /** The facts as they are in the file. */
  #recorded = '';

  constructor(family: Family, keeper: RecordKeeper, rules: MarkedRules, log: Log) {
    this.family = family;
    this.#keeper = keeper;
    this.#rules = rules;
    this.#log = log;
  }

  /** Nothing of it is in the file. */
  get isNew(): boolean {
    return this.#isNew;
  }

  /** What is noted is in the kernel. */
  get isQuiet(): boolean {
    return !this.#isSyncing && !this.#isBroken && !this.#isDoubted;
  }

  /** Something is to be written into the file. */
  get hasMore(): boolean {
    return this.#isNew || this.#areFactsDue || this.#pending.size > 0;
  }

  /** At the first sync: what a process before this one wrote, if the record of it holds. */
  async restore(servicePorts: Plans, options: unknown): Promise<RestoredPlans | undefined> {
    const section = await this.#sectionFor(options);
    this.isRestored = true;
    const restored = typeof section === 'string' ? section : await this.#match(section, servicePorts);
    if (typeof restored === 'string') {
      this.start = { why: restored };
      this.#log.info('Reading back what is in the kernel: there is no record of it that holds', {
        ipFamily: this.family,
        why: restored,
      });
      return undefined;
    }
    const { differing, isCurrent } = restored;
    this.#isNew = false;
    this.isVerified = isCurrent;
    this.start = { servicePorts: restored.applied.size, differed: differing.length, isCurrent };
    this.#log.info('Started from the record of what was written', {
      ipFamily: this.family,
      servicePorts: restored.applied.size,
      differed: differing.length,
      verified: isCurrent ? 'nothing has changed since' : 'behind',
    });
    return restored;
  }

  async #sectionFor(options: unknown): Promise<RecordSection | string> {
    const { mark } = this.#keeper;
    const section = this.#keeper.section(this.family);
    if (mark === undefined || typeof section === 'string') return section;
    if (section.options !== JSON.stringify(options)) return 'settings or addresses of this node have changed';
    const identity = await this.#rules.identity(mark);
    if (identity === undefined) return 'the rules in the kernel are without its mark';
    if (identity !== section.identity) return 'the rules in the kernel were made again';
    return section;
  }

  /** Bytes are compared; what differs is decoded. */
  async #match(section: RecordSection, servicePorts: Plans): Promise<RestoredPlans | string> {
    const { timeSlice, isCurrent } = this.#keeper;
    const writer = new ByteWriter();
    const applied = new Map<ServicePortId, ServicePortPlan>();
    const differing: ServicePortId[] = [];
    const withoutComments = new Set<ServicePortId>();
    let isReadable = true;
    const take = (id: ServicePortId, entry: Entry, port: ServicePortPlan | undefined): void => {
      if (entry.isWithoutComments) withoutComments.add(id);
      if (port) {
        writer.begin();
        encodeServicePort(writer, port);
        if (Buffer.compare(writer.bytes, entry.bytes) === 0) return void applied.set(id, port);
      }
      const before = decodeServicePort(entry.bytes);
      if (before) applied.set(id, before);
      else isReadable = false;
      differing.push(id);
    };
    await forEachSliced(
      section.entries,
      ([id, entry]) => take(id, entry, servicePorts.get(id)),
      timeSlice,
      16,
    );
    if (!isReadable) return 'a service port cannot be decoded';
    for (const id of servicePorts.keys()) if (!applied.has(id)) differing.push(id);
    return { applied, differing, withoutComments, state: section.state, isCurrent };
  }

  /** Before the kernel is changed; to be awaited. */
  begin(): Promise<void> | undefined {
    this.hasBegun = true;
    this.#isSyncing = true;
    this.#isDoubted = false; // this sync repairs it
    return this.#keeper.begin();
  }

  /** It was changed, as this says. */
  end(written: WrittenPlans): void {
    this.#isSyncing = false;
    this.#written = written;
    for (const id of written.ids) this.#pending.add(id);
    this.#areFactsDue = true;
    if (written.isFull) {
      this.#isMarkDue = true;
      this.isVerified = written.isWhole;
    }
    this.#isBroken = !written.isWhole || (this.#isBroken && !written.isFull);
    this.#keeper.flush();
  }

  /** Nobody knows what was changed; the next sync reads the kernel. */
  failed(): void {
    this.#isSyncing = false;
    this.#isBroken = true;
  }

  /** Another program changed something: until that is repaired, the record does not hold. */
  doubt(): void {
    if (!this.hasBegun) return;
    this.#isDoubted = true;
    this.#isMarkDue = true;
    void this.#keeper.begin();
  }

  /** Something else was changed in the kernel, by us: what is recorded holds. */
  touch(): void {
    this.#keeper.touch();
  }

  /** All that was written was compared with the kernel; what differed was noted before, and is repaired. */
  verified(): void {
    if (this.isVerified || !this.hasBegun) return;
    this.isVerified = true;
    void this.#keeper.begin();
    this.#keeper.flush();
  }

  /** Of a file that is new. */
  startAgain(): void {
    this.#isNew = true;
    this.#areFactsDue = true;
  }

  /** For the file, where they are not in it yet. Makes sure that the rules have the mark. */
  async facts(mark: string): Promise<Uint8Array | undefined> {
    if (!this.#written || !this.#areFactsDue) return undefined;
    this.#areFactsDue = false;
    if (this.#isMarkDue) {
      this.#isMarkDue = false;
      this.#identity = await this.#identityWith(mark);
    }
    const { options, state } = this.#written;
    const facts = { identity: this.#identity, options: JSON.stringify(options), state };
    const text = JSON.stringify(facts);
    if (text === this.#recorded && !this.#isNew) return undefined;
    this.#recorded = text;
    return sectionPayload(this.family, facts, this.#isNew);
  }

  async #identityWith(mark: string): Promise<string> {
    const known = await this.#rules.identity(mark);
    if (known !== undefined) return known;
    await this.#rules.setMark(mark);
    const identity = await this.#rules.identity(mark);
    if (identity === undefined) throw new Error(`the kernel does not keep the mark ${mark}`);
    return identity;
  }

  async removeMark(): Promise<void> {
    try {
      await this.#rules.setMark(undefined);
    } catch {
      // The rules are gone, or the next full sync deletes it.
    }
  }

  /** Service ports that are to be written, each as it is when its turn comes. */
  *takeEntries(): Generator<readonly [EntryKind, EncodeEntry]> {
    const { applied = new Map<ServicePortId, ServicePortPlan>(), withoutComments } = this.#written ?? {};
    const isAll = this.#isNew;
    this.#isNew = false;
    if (isAll) this.#pending.clear();
    for (const id of isAll ? applied.keys() : this.#pending) {
      this.#pending.delete(id);
      const port = applied.get(id);
      if (!port) yield [ENTRY.deleted, (writer) => writer.text(id)];
      else {
        const kind = withoutComments?.has(id) ? ENTRY.withoutComments : ENTRY.plain;
        yield [kind, (writer) => encodeServicePort(writer, port)];
      }
    }
  }
}
