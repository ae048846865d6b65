/**
 * The record of what this process wrote into the kernel, for the next one: each service port as it was planned when it
 * was written. A process says in it that it is about to change the kernel, and afterwards what it changed and at which
 * generation of nf_tables. What is recorded is then what the kernel has, unless others changed it since, and a generation
 * that is the same says that nobody did.
 *
 * The kernel has a mark of its own for each record: whoever changes our rules without keeping the record removes the
 * mark, and so does every older version, to which it is a stale object. Without its mark, or where anything else is in
 * doubt, a record is not used.
 */
import { randomBytes } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { messageOf } from '../../errors.ts';
import type { Log } from '../../log/log.ts';
import type { Family } from '../../model/ip.ts';
import { forEachSliced, TimeSlice } from '../../time/timeSlice.ts';
import { systemClock } from '../../time/systemClock.ts';
import { ByteWriter } from '../../plan/packedBytes.ts';
import { FamilyRecord, type MarkedRules, type RecordKeeper } from './familyRecord.ts';
import {
  checksumIn,
  donePayload,
  EntryBuffer,
  frame,
  type FrameType,
  headerFrame,
  type Journal,
  readJournal,
  RECORD_VERSION,
  type RecordBinding,
  type RecordSection,
} from './journal.ts';
import { bootId, networkNamespace, programIdentity, RecordFile } from './recordFile.ts';

/** The generation of nf_tables. */
export interface GenerationNow {
  readonly id: number;
  /** Every change that led to it was ours, or we were notified of it. */
  readonly isKnown: boolean;
}

interface WrittenRecordOptions {
  readonly directory: string;
  readonly mode: string;
  /** Before this process changed anything; `undefined`: the kernel does not tell. */
  readonly generationAtStart: number | undefined;
  readonly generation: () => Promise<GenerationNow | undefined>;
  readonly log: Log;
}

/** A frame with more bytes is sent; more than one slice's work are not collected. */
const FRAME_BYTES = 1 << 16;
/** Other changes of nf_tables within this time are one. */
const TOUCH_MS = 50;
/** A record that is this much larger than it need be is written again. */
const GROWTH = 2;
const GROWTH_BYTES = 1 << 18;
/** 40 bits: no two records that a machine has between two boots are alike. */
const MARK_LETTERS = 8;
/** Service ports between two looks at the clock. */
const PER_LOOK = 16;
/** The file is written beside syncs: none of them waits for it for longer. */
const BESIDE_MS = 3;
const NOTHING = new Uint8Array();

export class WrittenRecord implements RecordKeeper {
  readonly #options: WrittenRecordOptions;
  readonly #families: FamilyRecord[] = [];
  readonly timeSlice = new TimeSlice(systemClock);
  readonly #beside = new TimeSlice(systemClock, BESIDE_MS);
  #file: RecordFile | undefined;
  #journal: Journal | undefined;
  /** Why there is no journal. */
  #why = 'there is none';
  #mark: string;
  #checksum = 0;
  /** The last frame says that all of it holds. */
  #isSettled = false;
  /** In the last frame; 0: other programs may have changed something. */
  #generation = 0;
  #cancelTouch: (() => void) | undefined;
  #liveBytes = 0;
  /** Of families that were not in the file before. */
  #newBytes = 0;
  #isOn = true;
  #flushing: Promise<void> | undefined;
  readonly #writer = new ByteWriter();

  constructor(options: WrittenRecordOptions) {
    this.#options = options;
    this.#mark = newMark();
    try {
      this.#open();
    } catch (error) {
      this.#why = messageOf(error);
      this.#stop(error);
    }
  }

  /** In the kernel, for as long as this record is kept. `undefined`: none is kept. */
  get mark(): string | undefined {
    return this.#isOn ? this.#mark : undefined;
  }

  /** Of one family. */
  family(family: Family, rules: MarkedRules): FamilyRecord {
    const record = new FamilyRecord(family, this, rules, this.#options.log);
    this.#families.push(record);
    return record;
  }

  #open(): void {
    const { directory, mode } = this.#options;
    const found = RecordFile.open(directory);
    if (!found) return;
    const journal = readJournal(found.bytes);
    const why = typeof journal === 'string' ? journal : this.#whyNot(journal, this.#binding(mode));
    if (why !== undefined || typeof journal === 'string') {
      this.#why = why ?? '';
      found.file.void();
      found.file.close();
      return;
    }
    this.#file = found.file;
    this.#journal = journal;
    this.#mark = journal.header.mark;
    this.#checksum = journal.checksum;
    this.#liveBytes = journal.liveBytes;
    this.#isSettled = !journal.isOpen;
  }

  #binding(mode: string): RecordBinding {
    return {
      version: RECORD_VERSION,
      boot: bootId(),
      network: networkNamespace(),
      mode,
      program: programIdentity(),
    };
  }

  #whyNot({ header, isOpen, generation }: Journal, wanted: RecordBinding): string | undefined {
    if (header.boot !== wanted.boot) return 'it is of another boot';
    if (header.network !== wanted.network) return 'it is of another network namespace';
    if (header.mode !== wanted.mode) return `it is of the mode ${header.mode}`;
    if (header.program !== wanted.program) return 'it is of another version or build of this program';
    // A process that was about to change something, and did not: the generation is what it was.
    if (isOpen && (generation === 0 || generation !== this.#options.generationAtStart))
      return 'its process ended while it changed the kernel';
    return undefined;
  }

  /** What the record has of a family, or why it has nothing. */
  section(family: Family): RecordSection | string {
    return (
      this.#journal?.sections.get(family) ?? (this.#journal ? 'it has nothing of this family' : this.#why)
    );
  }

  /** Nobody can have changed anything since it was written. */
  get isCurrent(): boolean {
    const { generation } = this.#journal ?? {};
    return generation !== undefined && generation !== 0 && generation === this.#options.generationAtStart;
  }

  /** To be awaited before the kernel is changed. */
  begin(): Promise<void> | undefined {
    if (!this.#isOn || !this.#isSettled) return undefined;
    this.#isSettled = false;
    try {
      this.#append('intent', NOTHING);
      return undefined;
    } catch (error) {
      return this.#giveUp(error);
    }
  }

  /** Writes what was noted, as soon as there is time. */
  flush(): void {
    const { sections } = this.#journal ?? {};
    // Its bytes are needed no more.
    if (!this.#families.some(({ family, isRestored }) => !isRestored && sections?.has(family)))
      this.#journal = undefined;
    this.#flushing ??= this.#flush().finally(() => {
      this.#flushing = undefined;
    });
  }

  /** The generation may be another one, and what is recorded is in the kernel all the same. */
  touch(): void {
    this.#cancelTouch ??= systemClock.schedule(TOUCH_MS, () => {
      this.#cancelTouch = undefined;
      void this.#touch();
    });
  }

  async #touch(): Promise<void> {
    const before = this.#checksum;
    const known = await this.#exactGeneration().catch(() => 0);
    const isQuiet =
      this.#isOn &&
      this.#isSettled &&
      this.#checksum === before &&
      this.#families.every((each) => each.isQuiet);
    if (!isQuiet || known === 0 || known === this.#generation) return;
    try {
      this.#settle(known);
    } catch (error) {
      await this.#giveUp(error);
    }
  }

  /** 0: something may have changed unnoticed. */
  async #exactGeneration(): Promise<number> {
    const now = await this.#options.generation();
    const isVerified = this.#families.every((each) => each.isVerified || !each.hasBegun);
    return now?.isKnown === true && isVerified ? now.id : 0;
  }

  #settle(generation: number): void {
    this.#append('done', donePayload(generation));
    this.#generation = generation;
    this.#isSettled = true;
  }

  /** What is noted is in the file, or will not be. */
  async close(): Promise<void> {
    await this.#flushing;
    this.#cancelTouch?.();
    await this.#touch();
    this.#file?.close();
    this.#file = undefined;
    this.#isOn = false;
  }

  async #flush(): Promise<void> {
    try {
      await nextTurn(); // what waits for the sync that has just ended comes first
      while (this.#isOn && !this.#isSettled && this.#families.every((each) => each.isQuiet))
        await this.#write();
    } catch (error) {
      await this.#giveUp(error);
    }
  }

  /** All that is noted, and then, if nothing was noted or begun meanwhile, that it holds. */
  async #write(): Promise<void> {
    if (!this.#file || this.#isTooLarge(this.#file.bytes)) this.#create();
    const begun = this.#families.filter((each) => each.hasBegun);
    for (const family of begun) {
      const isAll = family.isNew;
      const before = this.#file?.bytes ?? 0;
      const facts = await family.facts(this.#mark);
      if (facts) this.#append('section', facts);
      await this.#writeEntries(family);
      if (isAll) this.#newBytes += (this.#file?.bytes ?? 0) - before;
    }
    const generation = await this.#exactGeneration();
    if (!this.#families.every((each) => each.isQuiet) || begun.some((each) => each.hasMore)) return;
    this.#settle(generation);
    this.#liveBytes = this.#liveBytes === 0 ? (this.#file?.bytes ?? 0) : this.#liveBytes + this.#newBytes;
    this.#newBytes = 0;
    this.#file?.complete();
  }

  /** One that is still being written grows until it holds: syncs go on meanwhile, and it must come to an end. */
  #isTooLarge(bytes: number): boolean {
    return this.#liveBytes > 0 && bytes > GROWTH * this.#liveBytes + GROWTH_BYTES;
  }

  async #writeEntries(family: FamilyRecord): Promise<void> {
    const buffer = new EntryBuffer(family.family);
    await forEachSliced(
      family.takeEntries(),
      ([kind, encode]) => {
        this.#writer.begin();
        encode(this.#writer);
        buffer.add(kind, this.#writer.bytes);
        if (buffer.length >= FRAME_BYTES) this.#append('ports', buffer.take());
      },
      this.#beside,
      PER_LOOK,
    );
    if (buffer.length > 1) this.#append('ports', buffer.take());
  }

  /** In place of the one that is there; until it is complete, that one says that it does not hold. */
  #create(): void {
    this.#file?.close();
    this.#file = RecordFile.create(this.#options.directory);
    this.#checksum = 0;
    this.#liveBytes = 0;
    this.#newBytes = 0;
    for (const family of this.#families) family.startAgain();
    const header = headerFrame(this.#binding(this.#options.mode), this.#mark);
    this.#checksum = checksumIn(header);
    this.#file.append(header);
  }

  #append(type: FrameType, payload: Uint8Array): void {
    const bytes = frame(type, payload, this.#checksum);
    this.#file?.append(bytes);
    this.#checksum = checksumIn(bytes);
  }

  /** Without a record, its mark must not be in the kernel when something changes there. */
  async #giveUp(error: unknown): Promise<void> {
    this.#stop(error);
    for (const family of this.#families) await family.removeMark();
  }

  #stop(error: unknown): void {
    if (!this.#isOn) return;
    this.#isOn = false;
    this.#file?.void();
    this.#file?.close();
    this.#file = undefined;
    this.#journal = undefined;
    this.#options.log.warn('No record is kept of what is written: the next start reads the kernel back', {
      directory: this.#options.directory,
      why: messageOf(error),
    });
  }
}

/** As chains of services have them in their names: a record's mark may be one. */
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

function newMark(): string {
  let mark = '';
  for (const byte of randomBytes(MARK_LETTERS)) mark += LETTERS[byte & 31];
  return mark;
}
