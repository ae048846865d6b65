/**
 * Changes that other programs made to what we wrote into the kernel: one log line, one counter and one way to damp a
 * fight, for every mode.
 *
 * A mode notes what is to be repaired, and then says `noticed`. The repair begins at once, unless the same object has
 * come back changed again and again right after we repaired it: then two managers fight over it, and each repair waits
 * longer than the one before.
 */
import type { Log } from '../log/log.ts';
import type { Family } from '../model/ip.ts';
import type { Clock } from '../time/clock.ts';

/** The program that changed something in the kernel, as the kernel names it. */
export interface ChangedBy {
  readonly processId: number | undefined;
  readonly processName: string | undefined;
}

export interface ForeignChange {
  /** For people, and to recognise a fight: `chain nat KUBE-SERVICES`, `set service-ips`, `virtual server TCP 10.96.0.1:80`. */
  readonly objects: readonly string[];
  /** Unknown where the kernel does not tell. */
  readonly changedBy?: ChangedBy | undefined;
  /** When it was noticed, by the clock; unset: now. */
  readonly since?: number | undefined;
}

/** What a mode reports of a family. */
export interface FamilyEvents {
  /** Asks for a sync. An urgent one does not wait for its turn: something is broken that worked. */
  request(cause: string, isUrgent?: boolean): void;
  /** Another program changed these; what is to be repaired was noted before. */
  foreignChange(change: ForeignChange): void;
  /** Another program may have changed anything. */
  notificationsLost(): void;
}

interface ForeignChangesOptions {
  readonly family: Family;
  readonly log: Log;
  readonly clock: Clock;
  /** Asks for the sync that repairs. */
  readonly repair: () => void;
  /** Called for each change, with the name of the program. */
  readonly onChange?: ((program: string, objects: readonly string[]) => void) | undefined;
  /** Called when all that was noticed is repaired. */
  readonly onRepaired?:
    | ((program: string, objects: readonly string[], milliseconds: number) => void)
    | undefined;
}

/** What the next line of the log is about. */
interface Noticed {
  readonly objects: Set<string>;
  readonly programs: Set<string>;
  readonly since: number;
  changes: number;
}

const UNKNOWN = 'unknown';
/** As an object that is changed again and again. */
const ANYTHING = 'anything';
/** A flush of ten thousand services has a hundred thousand objects; nobody reads their names. */
const MOST_OBJECTS = 100;
const MOST_PRINTED = 3;

export class ForeignChanges {
  readonly #options: ForeignChangesOptions;
  readonly #backoff: RepairBackoff;
  #noticed: Noticed | undefined;
  /** Noticed before the sync under way began, so that it is repaired when that one succeeds. */
  #inSync: Noticed | undefined;
  /** How many were ever noted; those of the sync under way and before; those that are repaired. */
  readonly #counts = { noted: 0, inSync: 0, repaired: 0 };
  #cancelRepair: (() => void) | undefined;
  #repairAt = Number.POSITIVE_INFINITY;
  #cancelRewrite: (() => void) | undefined;
  #isClosed = false;

  constructor(options: ForeignChangesOptions) {
    this.#options = options;
    this.#backoff = new RepairBackoff(options.clock);
  }

  /** What has to be repaired must have been noted before: the sync may begin at once. */
  noticed(change: ForeignChange): void {
    this.#note(change);
    const { delayMs, isNew } = this.#backoff.changed(change.objects.slice(0, MOST_OBJECTS));
    if (isNew) this.#logFight(change, delayMs);
    this.#schedule(delayMs);
  }

  /** A verification found a difference and has repaired it; nobody knows since when it was there. */
  foundAndRepaired(change: ForeignChange): void {
    this.#note(change);
    this.#backoff.changed(change.objects);
    this.syncBegan();
    this.syncEnded();
  }

  /** Another program may have changed anything: `rewrite`, later where that happens again and again. */
  lost(rewrite: () => void): void {
    const { delayMs } = this.#backoff.changed([ANYTHING]);
    if (delayMs === 0) return rewrite();
    if (this.#isClosed) return;
    this.#cancelRewrite ??= this.#options.clock.schedule(delayMs, () => {
      this.#cancelRewrite = undefined;
      rewrite();
    });
  }

  /** Marks what was noticed so far. The result says later what of it is not repaired yet. */
  mark(): () => readonly string[] {
    const { noted } = this.#counts;
    return () => {
      if (this.#counts.repaired >= noted) return [];
      const objects = printSome(this.#inSync?.objects ?? this.#noticed?.objects ?? new Set());
      return [`${this.#options.family}: what another program changed is not repaired yet: ${objects}`];
    };
  }

  syncBegan(): void {
    this.#counts.inSync = this.#counts.noted;
    const before = this.#inSync;
    const noticed = this.#noticed;
    this.#noticed = undefined;
    this.#inSync = before && noticed ? join(before, noticed) : (before ?? noticed);
    this.#cancel();
  }

  /**
   * It succeeded. One that failed is tried again, and what it had to repair is kept for then. Returns whether it had to
   * repair something.
   */
  syncEnded(): boolean {
    this.#backoff.repaired([ANYTHING]);
    const repaired = this.#inSync;
    if (!repaired) return false;
    this.#inSync = undefined;
    this.#counts.repaired = this.#counts.inSync;
    const { family, log, clock, onRepaired } = this.#options;
    const milliseconds = Math.round(clock.now() - repaired.since);
    const changedBy = printSome(repaired.programs);
    log.warn('Another program changed our rules; repaired', {
      ipFamily: family,
      changedBy,
      objects: printSome(repaired.objects),
      changes: repaired.changes,
      milliseconds,
    });
    onRepaired?.(changedBy, [...repaired.objects], milliseconds);
    this.#backoff.repaired(repaired.objects);
    return true;
  }

  /** What the sync under way has to repair; empty: nothing. */
  printInSync(): string {
    if (!this.#inSync) return '';
    const { objects, programs } = this.#inSync;
    const who = programs.has(UNKNOWN) && programs.size === 1 ? 'another program' : printSome(programs);
    return `${who} changed ${printSome(objects)}`;
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel();
    this.#cancelRewrite?.();
  }

  #note({ objects, changedBy, since = this.#options.clock.now() }: ForeignChange): void {
    this.#noticed ??= { objects: new Set(), programs: new Set(), since, changes: 0 };
    this.#noticed.changes++;
    this.#counts.noted++;
    addSome(this.#noticed.objects, objects);
    addSome(this.#noticed.programs, [printProgram(changedBy)]);
    this.#options.onChange?.(changedBy?.processName ?? UNKNOWN, objects);
  }

  #schedule(delayMs: number): void {
    const { clock, repair } = this.#options;
    if (delayMs === 0) return repair();
    const at = clock.now() + delayMs;
    if (this.#isClosed || this.#repairAt <= at) return;
    this.#cancel();
    this.#repairAt = at;
    this.#cancelRepair = clock.schedule(delayMs, () => {
      this.#repairAt = Number.POSITIVE_INFINITY;
      repair();
    });
  }

  #cancel(): void {
    this.#cancelRepair?.();
    this.#cancelRepair = undefined;
    this.#repairAt = Number.POSITIVE_INFINITY;
  }

  #logFight({ objects, changedBy }: ForeignChange, delayMs: number): void {
    const other = printProgram(changedBy);
    const own = `Junction (pid ${process.pid})`;
    const what = `${own} and another program (${other}) keep undoing each other's changes; repairing less often`;
    this.#options.log.warn(what, {
      ipFamily: this.#options.family,
      junction: own,
      changedBy: other,
      objects: printSome(new Set(objects)),
      repairAfter: `${delayMs / 1000}s`,
      whatToDo: 'Stop the other program, or let only one of the two manage these objects.',
    });
  }
}

function join(a: Noticed, b: Noticed): Noticed {
  const joined = { ...a, changes: a.changes + b.changes };
  addSome(joined.objects, b.objects);
  addSome(joined.programs, b.programs);
  return joined;
}

function addSome(known: Set<string>, more: Iterable<string>): void {
  for (const each of more) {
    if (known.size >= MOST_OBJECTS) return;
    known.add(each);
  }
}

function printProgram(changedBy: ChangedBy | undefined): string {
  const { processName = UNKNOWN, processId } = changedBy ?? {};
  return processId === undefined ? processName : `${processName} (pid ${processId})`;
}

export function printSome(names: ReadonlySet<string>): string {
  const shown = [...names].slice(0, MOST_PRINTED).join(', ');
  const more = names.size - MOST_PRINTED;
  if (more <= 0) return shown;
  return `${shown} and ${names.size >= MOST_OBJECTS ? 'many' : more} more`;
}

interface Damping {
  /** Zero: repair at once. */
  readonly delayMs: number;
  /** Worth a line in the log: the fight has just begun, or the delay has grown to its limit. */
  readonly isNew: boolean;
}

interface Contested {
  /** How often in a row the object was changed right after a repair. */
  returns: number;
  repairedAt: number | undefined;
  changedAt: number;
}

/** A change so soon after a repair is taken for an answer to it. */
const ANSWER_MS = 10_000;
/** So many answers in a row are a fight. A person at a shell is slower, or gives up before. */
const FREE_RETURNS = 5;
const FIRST_DELAY_MS = 1000;
const LAST_DELAY_MS = 30_000;
const MOST_FOUGHT_OVER = 1000;

/** Recognises that another program undoes each of our repairs, and returns how long the next one should wait. */
class RepairBackoff {
  readonly #clock: Clock;
  readonly #contested = new Map<string, Contested>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Of several objects, the one that is fought over hardest decides. */
  changed(objects: Iterable<string>): Damping {
    let worst: Damping = { delayMs: 0, isNew: false };
    for (const object of objects) {
      const { delayMs, isNew } = this.#changed(object);
      worst = { delayMs: Math.max(delayMs, worst.delayMs), isNew: isNew || worst.isNew };
    }
    return worst;
  }

  repaired(objects: Iterable<string>): void {
    const now = this.#clock.now();
    for (const object of objects) {
      const contested = this.#contested.get(object);
      if (contested) contested.repairedAt = now;
    }
  }

  #changed(object: string): Damping {
    const now = this.#clock.now();
    const contested = this.#contested.get(object);
    if (!contested) {
      this.#makeRoom();
      this.#contested.set(object, { returns: 0, repairedAt: undefined, changedAt: now });
      return { delayMs: 0, isNew: false };
    }
    contested.changedAt = now;
    // Further changes before the repair are the same round.
    if (contested.repairedAt === undefined) return { delayMs: delayOf(contested.returns), isNew: false };
    const isAnswer = now - contested.repairedAt <= ANSWER_MS;
    contested.returns = isAnswer ? contested.returns + 1 : 0;
    contested.repairedAt = undefined;
    const delayMs = delayOf(contested.returns);
    const grewToLimit = delayMs === LAST_DELAY_MS && delayOf(contested.returns - 1) < LAST_DELAY_MS;
    return { delayMs, isNew: contested.returns === FREE_RETURNS || grewToLimit };
  }

  /** Deletes the oldest: a fight is younger than a thousand other changes. */
  #makeRoom(): void {
    if (this.#contested.size < MOST_FOUGHT_OVER) return;
    const [[oldest] = ['']] = [...this.#contested].sort(([, a], [, b]) => a.changedAt - b.changedAt);
    this.#contested.delete(oldest);
  }
}

function delayOf(returns: number): number {
  if (returns < FREE_RETURNS) return 0;
  return Math.min(LAST_DELAY_MS, FIRST_DELAY_MS * 2 ** (returns - FREE_RETURNS));
}
