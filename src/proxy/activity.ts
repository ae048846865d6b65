/** What a family did of late, for `status` and `watch`: syncs, refusals, changes by other programs, cleaned-up flows. */
import type { FamilyStatus, ForeignChangesStatus, SyncKind, SyncStatus } from '../explain/status.ts';
import type { WatchEvent } from '../explain/types.ts';
import { isJunctionError, messageOf } from '../errors.ts';
import type { Log } from '../log/log.ts';
import type { Family } from '../model/ip.ts';
import type { ServicePortId } from '../model/serviceTracker.ts';
import type { SyncOutcome } from './proxier.ts';

interface FamilyActivityOptions {
  readonly family: Family;
  /** Milliseconds since the epoch. */
  readonly wallTime: () => number;
  readonly emit: (event: WatchEvent) => void;
}

/** Objects that other programs changed, as far as one answer names them; programs have any name that they like. */
const MOST_OBJECTS = 20;
const MOST_PROGRAMS = 50;
/** A kernel that refuses everything refuses ten thousand service ports. */
const MOST_REFUSED = 500;

export class FamilyActivity {
  readonly #options: FamilyActivityOptions;
  readonly #syncs: Record<SyncKind, number> = { full: 0, incremental: 0, nothing: 0, failed: 0 };
  #lastSync: SyncStatus | undefined;
  #lastVerification: FamilyStatus['lastVerification'];
  #refused: ReadonlyMap<ServicePortId, string> = new Map();
  #foreignCount = 0;
  readonly #byProgram = new Map<string, number>();
  #lastForeign: ForeignChangesStatus['last'];
  /** A sync is under way. */
  isSyncing = false;

  constructor(options: FamilyActivityOptions) {
    this.#options = options;
  }

  get status(): Pick<
    FamilyStatus,
    'lastSync' | 'syncs' | 'lastVerification' | 'refused' | 'foreignChanges' | 'isServed'
  > {
    const last = this.#lastForeign;
    return {
      // The first one reads nothing and writes nothing where a process before this one left a record.
      isServed: this.#syncs.full + this.#syncs.incremental + this.#syncs.nothing > 0,
      syncs: { ...this.#syncs },
      ...(this.#lastSync && { lastSync: this.#lastSync }),
      ...(this.#lastVerification && { lastVerification: this.#lastVerification }),
      refused: [...this.#refused]
        .slice(0, MOST_REFUSED)
        .map(([servicePort, error]) => ({ servicePort, error })),
      foreignChanges: {
        count: this.#foreignCount,
        byProgram: Object.fromEntries(this.#byProgram),
        ...(last && { last }),
      },
    };
  }

  /** With what the kernel said. */
  get refused(): ReadonlyMap<ServicePortId, string> {
    return this.#refused;
  }

  synced({ report, ...outcome }: SyncOutcome, elapsedMs: number, cause: string): void {
    const { family, wallTime, emit } = this.#options;
    const { kind, commits, objects } = report;
    const ms = rounded(elapsedMs);
    const planMs = rounded(outcome.planMs);
    const writeMs = rounded(elapsedMs - outcome.planMs);
    const at = wallTime();
    this.#syncs[kind]++;
    this.#lastSync = { at, kind, cause, ms, planMs, writeMs, commits, objects };
    if (kind === 'full') this.#lastVerification = { at, ms, isUnchanged: commits === 0 };
    const before = this.#refused;
    this.#refused = new Map([...report.refused].map(([id, error]) => [id, error.message]));
    const { seenAt } = outcome;
    const stages = { planMs, writeMs, ...(seenAt !== undefined && { seenAt }) };
    if (kind !== 'nothing')
      emit({ kind: 'sync', at, family, sync: kind, cause, commits, objects, ms, ...stages });
    for (const [servicePort, error] of [...this.#refused].slice(0, MOST_REFUSED))
      if (before.get(servicePort) !== error) emit({ kind: 'refused', at, family, servicePort, error });
  }

  failed(cause: string, error: unknown, ms: number): void {
    const { family, wallTime, emit } = this.#options;
    const at = wallTime();
    const failure = { cause, ms: rounded(ms), commits: 0, objects: 0, error: messageOf(error) };
    this.#syncs.failed++;
    this.#lastSync = { at, kind: 'failed', ...failure };
    emit({ kind: 'sync', at, family, sync: 'failed', ...failure });
  }

  foreignChange(program: string, objects: readonly string[]): void {
    this.#foreignCount++;
    const known = this.#byProgram.get(program);
    const name = known === undefined && this.#byProgram.size >= MOST_PROGRAMS ? 'others' : program;
    this.#byProgram.set(name, (this.#byProgram.get(name) ?? 0) + 1);
    this.#lastForeign = { at: this.#options.wallTime(), program, objects: objects.slice(0, MOST_OBJECTS) };
  }

  foreignChangesRepaired(program: string, all: readonly string[], repairedMs: number): void {
    const { family, wallTime, emit } = this.#options;
    const at = wallTime();
    const objects = all.slice(0, MOST_OBJECTS);
    this.#lastForeign = { at: at - repairedMs, program, objects, repairedMs };
    emit({ kind: 'foreign', at, family, objects, program, repairedMs });
  }

  flowsCleaned(deleted: number, ms: number): void {
    const { family, wallTime, emit } = this.#options;
    if (deleted > 0) emit({ kind: 'conntrack', at: wallTime(), family, deleted, ms: rounded(ms) });
  }
}

function rounded(milliseconds: number): number {
  return Math.round(100 * milliseconds) / 100;
}

export function logFailure(log: Log, ipFamily: Family, error: unknown, syncPeriodMs: number): void {
  log.error('Sync failed', {
    ipFamily,
    err: error,
    ...(isJunctionError(error) && { whatToDo: error.hint }),
    retryingTime: `${syncPeriodMs / 1000}s`,
  });
}
