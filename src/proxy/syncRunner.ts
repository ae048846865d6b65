/** Syncs one family: when something changed, when a sync failed, and now and then to verify that all is still there. */
import type { Log } from '../log/log.ts';
import type { ServicePortId } from '../model/serviceTracker.ts';
import type { Clock } from '../time/clock.ts';
import { BoundedRunner } from './boundedRunner.ts';
import type { Proxier, SyncOutcome } from './proxier.ts';
import { type ChangedBy, ForeignChanges, printSome } from './foreignChanges.ts';
import { Causes, type LookResult } from './report.ts';
import { LookBudget, LooksBeside } from './looks.ts';
import { type FamilyActivity, logFailure } from './activity.ts';
import { OpenWork, type SideWork } from './openWork.ts';
import type { FamilyTelemetry } from './telemetry.ts';

/** Cheap to read, and different whenever another program may have changed the kernel's rules. */
export interface Generation {
  readonly id: number | string;
  /** Fewer than before: some were deleted. */
  readonly rules?: number;
}

/** Notices that everything was flushed. */
export interface FlushMonitor {
  /** Resolves when it would notice, or when it cannot for now. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** How a mode notices that another program changed what we wrote. */
export interface Verification {
  /** The kernel notifies of every change that others make, so nothing has to be verified now and then. */
  readonly isNotified?: boolean | undefined;
  /** Everything is read back in each sync period, whatever that takes: nothing cheaper would notice each change. */
  readonly isEachPeriod?: boolean | undefined;
  readonly generation?: (() => Generation | undefined) | undefined;
  /** The next sync looks at the base-chain jumps, whatever a look at everything would cost. */
  readonly requestJumps?: (() => void) | undefined;
  readonly flushMonitor?: ((intervalMs: number, onFlushed: () => void) => FlushMonitor) | undefined;
}

interface SyncRunnerOptions extends Pick<Verification, 'isNotified' | 'generation' | 'requestJumps'> {
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
  /** Everything was compared beside the syncs. */
  readonly onLooked?: () => void;
}

interface Suspect {
  readonly changedBy: ChangedBy | undefined;
  readonly since: number;
  /** A look beside the syncs has ended: the next sync repairs all that it found. */
  readonly isLooked?: true;
}

const HOUR_MS = 3_600_000;
/** Reading the kernel back may take this part of one core's time, whatever the size of the cluster. */
const VERIFY_SHARE = 0.01;
/** The same when something speaks for it that rules are gone. */
const SUSPECT_SHARE = 0.1;
/** Causes that more than one part of the program names. */
export const VERIFICATION = 'verification of what is in the kernel';
export const NODE_ADDRESSES = 'addresses of this node changed';
const SUSPICION = 'another program changed something, and the kernel did not say what';
/** But no look waits longer than so many sync periods. */
const MOST_PERIODS = 10;

export class SyncRunner {
  readonly proxier: Proxier;
  readonly #options: SyncRunnerOptions;
  readonly #telemetry: FamilyTelemetry | undefined;
  readonly #runner: BoundedRunner;
  readonly foreignChanges: ForeignChanges;
  #isStarted = false;
  #isStopping = false;
  readonly #looks = new LookBudget();
  /** Unset where a mode can only look during a sync. */
  readonly #looksBeside: LooksBeside | undefined;
  /** Under which everything was found in place. */
  #verified: Generation | undefined;
  /** When the look beside the syncs began. */
  #generationBefore: Generation | undefined;
  /** At the end of our last sync. */
  #lastSeen: Generation | undefined;
  /** There were fewer than we had left, and nobody has looked since. */
  #areRulesMissing = false;
  /** Who may have changed what the next look finds. */
  #suspect: Suspect | undefined;
  #cancelLook: (() => void) | undefined;
  /** When the mode wants another sync. */
  #retryAt: number | undefined;
  readonly #open: OpenWork;
  /** Why the next sync was asked for, besides objects that changed. */
  readonly #causes = new Causes();
  #syncPeriodMs: number;

  constructor(options: SyncRunnerOptions) {
    const { proxier, log, clock } = options;
    const { family } = proxier;
    this.#options = options;
    this.proxier = proxier;
    this.#open = new OpenWork({
      family,
      repairs: () => this.foreignChanges.mark(),
      isLooking: () => this.#looksBeside?.isUnderWay ?? false,
      onApplied: () => options.onApplied?.(),
    });
    this.#telemetry = options.telemetry;
    this.#syncPeriodMs = options.syncPeriodMs;
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
    const look = proxier.writer.verify?.bind(proxier.writer);
    this.#looksBeside =
      look &&
      new LooksBeside({
        family,
        log,
        clock,
        look: (timeSlice) => {
          this.#generationBefore = options.generation?.();
          return look(timeSlice);
        },
        onEnd: (...ended) => this.#lookedBeside(...ended),
        onIdle: () => options.onApplied?.(),
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
    this.#syncPeriodMs = periods.syncPeriodMs;
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

  /** Everything is read back and repaired where it differs. */
  requestFull(cause?: string): void {
    this.proxier.writer.requestFull();
    this.request(cause);
  }

  /** Everything is compared and repaired where it differs; beside syncs where the mode can, so that no change waits for it. */
  look(cause: string, isUrgent = false): void {
    if (!this.#isStarted || !this.proxier.isSynced) return;
    if (this.#looksBeside) return this.#looksBeside.request(cause);
    this.proxier.writer.requestFull();
    this.request(cause, isUrgent);
  }

  #lookedBeside(result: LookResult | undefined, milliseconds: number, cause: string): void {
    if (result && result.checked > 0) this.proxier.writer.verified?.();
    this.#options.onLooked?.();
    this.#looks.ended(this.#options.clock.now(), result && milliseconds);
    this.#areRulesMissing = false;
    if (result?.suspects === 0) {
      this.#verified = this.#generationBefore;
      this.#suspect = undefined;
      return;
    }
    if (result && this.#suspect) this.#suspect = { ...this.#suspect, isLooked: true };
    if (!result) this.proxier.writer.requestFull();
    this.request(cause, true);
  }

  /** The canary is gone. Where the kernel notifies of changes, what went with it is being repaired already. */
  flushed(): void {
    if (!this.#options.isNotified) this.requestFull('our canary chain is gone: the tables were flushed');
  }

  /** The same, unless nothing can have changed or looks are too costly to repeat so soon. */
  verify(): void {
    const { isNotified, generation, requestJumps } = this.#options;
    if (isNotified) return;
    const now = generation?.();
    if (now !== undefined && now.id === this.#verified?.id) return;
    const before = this.#lastSeen;
    const isChanged = now !== undefined && before !== undefined && now.id !== before.id;
    if (isChanged && (now.rules ?? 0) < (before.rules ?? 0)) this.#areRulesMissing = true;
    if (this.#waitForLook(this.#areRulesMissing ? SUSPECT_SHARE : VERIFY_SHARE) <= 0) this.look(VERIFICATION);
    else if (isChanged && requestJumps) {
      requestJumps();
      this.request(VERIFICATION);
    }
  }

  /**
   * Something may have been changed, and nobody can say what. Everything is looked at, at once unless looks are costly;
   * then the base-chain jumps are, and everything if one of them is missing.
   */
  suspect(changedBy: ChangedBy | undefined): void {
    const { clock, requestJumps } = this.#options;
    this.#suspect = { changedBy, since: this.#suspect?.since ?? clock.now() };
    this.#cancelLook?.();
    const waitMs = this.#waitForLook(SUSPECT_SHARE);
    if (waitMs <= 0) return this.#lookNow();
    this.#cancelLook = clock.schedule(waitMs, () => this.#lookNow());
    if (!requestJumps) return;
    requestJumps();
    this.request(SUSPICION, true);
  }

  #lookNow(): void {
    this.#cancelLook?.();
    this.#looks.ended(this.#options.clock.now(), undefined); // what comes during the look waits for the next one
    this.look(SUSPICION, true);
  }

  #waitForLook(share: number): number {
    return this.#looks.waitMs(this.#options.clock.now(), share, MOST_PERIODS * this.#syncPeriodMs);
  }

  stop(): Promise<void> {
    this.#isStopping = true;
    this.foreignChanges.close();
    this.#cancelLook?.();
    this.#looksBeside?.close();
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
    const { asked } = this.#open;
    const refused = new Map<ServicePortId, Error>();
    let outcome: SyncOutcome | undefined;
    do {
      const started = clock.now();
      const generation = this.#options.generation?.();
      this.foreignChanges.syncBegan();
      const causes = this.#causes.take();
      outcome = await this.#write(started, outcome ? 'next' : 'first', causes);
      if (!outcome) return undefined;
      for (const [id, error] of outcome.report.refused) refused.set(id, error);
      outcome = { ...outcome, report: { ...outcome.report, refused } };
      this.#finish(outcome, generation, clock.now() - started, causes);
    } while (outcome.isPartial && !this.#isStopping);
    if (!outcome.isPartial) this.#open.written(asked);
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

  #finish(outcome: SyncOutcome, generation: Generation | undefined, elapsedMs: number, causes: Causes): void {
    const { clock, onSynced } = this.#options;
    const { report } = outcome;
    const isLook = report.kind === 'full' && report.commits === 0;
    if (report.kind === 'full') {
      this.#looks.ended(clock.now(), isLook ? elapsedMs : undefined);
      this.#areRulesMissing = false;
    }
    if (isLook) this.#verified = generation;
    else if (report.commits > 0) this.#verified = undefined;
    this.#lastSeen = this.#options.generation?.();
    const cause = this.#printCause(outcome, causes);
    this.#logOutcome(outcome, elapsedMs, cause);
    this.#options.activity?.synced(outcome, elapsedMs, cause);
    this.#reportRepairs(report);
    this.#telemetry?.synced(outcome, elapsedMs / 1000);
    this.#open.synced(onSynced?.(outcome) ?? []);
  }

  #reportRepairs({ kind, repaired }: SyncOutcome['report']): void {
    const suspect = this.#suspect;
    if (kind === 'full' || suspect?.isLooked) this.#suspect = undefined;
    else if (suspect && repaired.length > 0) this.#lookNow();
    if (this.foreignChanges.syncEnded() || repaired.length === 0) return;
    this.foreignChanges.foundAndRepaired({ objects: repaired, ...suspect });
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
