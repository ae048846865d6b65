/** Syncs one family: when something changed, when a sync failed, and now and then to verify that all is still there. */
import type { Log } from '../log/log.ts';
import type { ServicePortId } from '../model/serviceTracker.ts';
import type { Clock } from '../time/clock.ts';
import { BoundedRunner } from './boundedRunner.ts';
import type { Proxier, SyncOutcome } from './proxier.ts';
import { ForeignChanges, printSome } from './foreignChanges.ts';
import { Causes } from './report.ts';
import { type FamilyActivity, logFailure } from './activity.ts';
import { OpenWork, type SideWork } from './openWork.ts';
import type { FamilyTelemetry } from './telemetry.ts';

/** Notices that everything was flushed. */
export interface FlushMonitor {
  /** Resolves when it would notice, or when it cannot for now. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** How a mode notices that another program changed what we wrote. */
export interface Verification {
  /** The kernel notifies of every change that others make. */
  readonly isNotified?: boolean | undefined;
  /** How often everything is written again, whatever changed; unset: never. */
  readonly fullSyncEvery?: 'syncPeriod' | 'hour' | undefined;
  readonly flushMonitor?: ((intervalMs: number, onFlushed: () => void) => FlushMonitor) | undefined;
}

interface SyncRunnerOptions extends Pick<Verification, 'isNotified' | 'fullSyncEvery'> {
  readonly proxier: Proxier;
  /** What it writes, for the log; unset: iptables. */
  readonly mode?: 'iptables' | 'ipvs' | 'nftables';
  readonly log: Log;
  readonly clock: Clock;
  readonly minSyncPeriodMs: number;
  readonly syncPeriodMs: number;
  readonly telemetry?: FamilyTelemetry;
  readonly activity?: FamilyActivity;
  /** Another program changed what we wrote; called with its name. */
  readonly onForeignChange?: ((program: string) => void) | undefined;
  readonly onSynced?: (outcome: SyncOutcome) => readonly SideWork[];
  /** Work has ended that `mark` may have found open. */
  readonly onApplied?: () => void;
}

const HOUR_MS = 3_600_000;
const PERIODIC = 'periodic full sync';
/** A cause that more than one mode names. */
export const NODE_ADDRESSES = 'addresses of this node changed';

export class SyncRunner {
  readonly proxier: Proxier;
  readonly #options: SyncRunnerOptions;
  readonly #telemetry: FamilyTelemetry | undefined;
  readonly #runner: BoundedRunner;
  readonly foreignChanges: ForeignChanges;
  #isStarted = false;
  #isStopping = false;
  /** When everything was last written. */
  #fullAt = Number.NEGATIVE_INFINITY;
  /** When the mode wants another sync. */
  #retryAt: number | undefined;
  readonly #open: OpenWork;
  /** Why the next sync was asked for, besides objects that changed. */
  readonly #causes = new Causes();

  constructor(options: SyncRunnerOptions) {
    const { proxier, log, clock } = options;
    const { family } = proxier;
    this.#options = options;
    this.proxier = proxier;
    this.#open = new OpenWork({
      family,
      repairs: () => this.foreignChanges.mark(),
      onApplied: () => options.onApplied?.(),
    });
    this.#telemetry = options.telemetry;
    this.#runner = new BoundedRunner({
      run: () => this.#sync(),
      minIntervalMs: options.minSyncPeriodMs,
      retryIntervalMs: options.syncPeriodMs,
      maxIntervalMs: Math.max(HOUR_MS, options.minSyncPeriodMs),
      clock,
      onError: (error) => {
        this.#open.failed(error);
        logFailure(log, family, error, options.syncPeriodMs);
      },
    });
    this.foreignChanges = new ForeignChanges({
      family,
      log,
      clock,
      repair: () => this.request(undefined, true),
      onChange: (program, objects) => {
        options.activity?.foreignChange(program, objects);
        options.onForeignChange?.(program);
      },
      onRepaired: (...repaired) => options.activity?.foreignChangesRepaired(...repaired),
    });
  }

  setPeriods(periods: Pick<SyncRunnerOptions, 'minSyncPeriodMs' | 'syncPeriodMs'>): void {
    this.#runner.setIntervals(periods.minSyncPeriodMs, periods.syncPeriodMs);
  }

  /** A family that cannot be served yet gets every event all the same, and waits for its start. */
  start(): void {
    this.#isStarted = true;
    this.#telemetry?.started();
    this.#runner.start();
    this.request();
  }

  get isStarted(): boolean {
    return this.#isStarted;
  }

  /** `cause`: for the log; unset: objects that changed. */
  request(cause?: string, isUrgent = false): void {
    if (!this.#isStarted || !this.proxier.isSynced) return;
    this.#open.ask();
    this.#causes.note(cause);
    this.#telemetry?.queued();
    this.#runner.request(isUrgent);
  }

  /** Marks what is open now. The result says later what of it still is, a sentence each. */
  mark(): () => readonly string[] {
    return this.#open.mark();
  }

  /** Everything is written again. */
  requestFull(cause?: string, isUrgent = false): void {
    this.proxier.writer.requestFull();
    this.request(cause, isUrgent);
  }

  /** The canary is gone. Where the kernel notifies of changes, what went with it is being repaired already. */
  flushed(): void {
    if (!this.#options.isNotified) this.requestFull('our canary chain is gone: the tables were flushed');
  }

  /** Another program may have changed anything. */
  notificationsLost(): void {
    this.foreignChanges.lost(() => this.requestFull('notifications of the kernel were lost', true));
  }

  /** A sync period has passed. */
  periodPassed(): void {
    const { fullSyncEvery, clock } = this.#options;
    const isDue = fullSyncEvery === 'hour' && clock.now() - this.#fullAt >= HOUR_MS;
    if (isDue || fullSyncEvery === 'syncPeriod') this.requestFull(PERIODIC);
  }

  stop(): Promise<void> {
    this.#isStopping = true;
    this.foreignChanges.close();
    return this.#runner.stop();
  }

  /** Returns after how many milliseconds the mode wants another sync. */
  async #sync(): Promise<number | undefined> {
    const { proxier, log, clock, mode = 'iptables' } = this.#options;
    if (!proxier.isSynced) {
      log.verbose(2, `Not syncing ${mode} until Services and Endpoints have been received`, {
        ipFamily: proxier.family,
      });
      return undefined;
    }
    if (this.#retryAt !== undefined && clock.now() >= this.#retryAt) {
      this.#causes.note('the mode asked for another sync');
      this.#telemetry?.queued();
    }
    log.verbose(2, `Syncing ${mode} rules`, { ipFamily: proxier.family });
    const refused = new Map<ServicePortId, Error>();
    let outcome: SyncOutcome | undefined;
    do {
      const started = clock.now();
      const { asked } = this.#open;
      this.foreignChanges.syncBegan();
      const causes = this.#causes.take();
      outcome = await this.#write(started, outcome?.isPartial ? 'next' : 'first', causes);
      if (!outcome) return undefined;
      for (const [id, error] of outcome.report.refused) refused.set(id, error);
      outcome = { ...outcome, report: { ...outcome.report, refused } };
      this.#finish(outcome, clock.now() - started, causes);
      if (!outcome.isPartial) this.#open.written(asked);
    } while ((outcome.isPartial || outcome.report.isUnfinished) && !this.#isStopping);
    this.#throwIfRefused(outcome);
    const { retryAfterMs } = outcome.report;
    this.#retryAt = retryAfterMs === undefined ? undefined : clock.now() + retryAfterMs;
    return retryAfterMs;
  }

  async #write(started: number, turn: 'first' | 'next', causes: Causes): Promise<SyncOutcome | undefined> {
    const { activity } = this.#options;
    if (activity) activity.isSyncing = true;
    try {
      return await this.proxier.sync(turn);
    } catch (error) {
      const elapsedMs = this.#options.clock.now() - started;
      activity?.failed(causes.print(), error, elapsedMs);
      this.#causes.join(causes);
      this.#causes.note('again after a sync that failed');
      this.#telemetry?.failed(error, elapsedMs / 1000, this.proxier.writer.attempt ?? 'full');
      throw error;
    } finally {
      if (activity) activity.isSyncing = false;
    }
  }

  #finish(outcome: SyncOutcome, elapsedMs: number, causes: Causes): void {
    const { clock, onSynced } = this.#options;
    const { report } = outcome;
    if (report.kind === 'full') this.#fullAt = clock.now();
    const cause = this.#printCause(outcome, causes);
    this.#logOutcome(outcome, elapsedMs, cause);
    this.#options.activity?.synced(outcome, elapsedMs, cause);
    this.#reportRepairs(report);
    this.#telemetry?.synced(outcome, elapsedMs / 1000);
    this.#open.synced(onSynced?.(outcome) ?? []);
  }

  #reportRepairs({ repaired, isRepairing }: SyncOutcome['report']): void {
    if (isRepairing) return;
    if (this.foreignChanges.syncEnded() || repaired.length === 0) return;
    this.foreignChanges.foundAndRepaired({ objects: repaired });
  }

  /** The others are served; this one is tried again. */
  #throwIfRefused({ report }: SyncOutcome): void {
    if (report.refused.size === 0) return;
    this.proxier.writer.requestFull();
    this.#causes.note('again after rules that the kernel refused');
    const [[id, error] = ['', new Error('unknown')]] = report.refused;
    const others = report.refused.size > 1 ? ` (and ${report.refused.size - 1} more)` : '';
    throw new Error(`the kernel refuses the rules of ${id}${others}: ${error.message}`, { cause: error });
  }

  #logOutcome(outcome: SyncOutcome, elapsedMs: number, cause: string): void {
    const { log } = this.#options;
    const { kind, commits, objects, counts } = outcome.report;
    const milliseconds = Math.round(elapsedMs * 10) / 10;
    log.verbose(2, 'SyncProxyRules complete', {
      ipFamily: this.proxier.family,
      elapsed: `${milliseconds}ms`,
      fullSync: kind === 'full',
    });
    if (kind === 'nothing' || commits + objects === 0) return;
    log.verbose(1, 'Synced rules', {
      ipFamily: this.proxier.family,
      kind,
      changedServicePorts: outcome.changes.length,
      commits,
      objects,
      ...Object.fromEntries(Object.entries(counts).filter(([name]) => !name.includes('.'))),
      milliseconds,
      cause,
    });
  }

  #printCause({ report, causes }: SyncOutcome, requested: Causes): string {
    const foreign = this.foreignChanges.printInSync();
    const isFound = foreign === '' && report.repaired.length > 0;
    const found = isFound ? `found changed: ${printSome(new Set(report.repaired))}` : '';
    const known = [causes?.print() ?? '', foreign, requested.print(), found].filter((cause) => cause !== '');
    return known.join('; ') || (report.kind === 'full' ? 'resync' : 'unknown');
  }
}
