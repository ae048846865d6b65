/** Syncs one family: when something changed, when a sync failed, and now and then to verify that all is still there. */
import { isJunctionError } from '../errors.ts';
import type { Log } from '../log.ts';
import type { Clock } from '../sync/clock.ts';
import { Runner } from '../sync/runner.ts';
import type { FamilyProxy, SyncOutcome } from './familyProxy.ts';
import { ForeignChanges } from './foreignChanges.ts';
import { type FamilyObserver, NO_OBSERVER } from './observer.ts';

export interface FamilyLoopOptions {
  readonly proxy: FamilyProxy;
  /** What it writes, for the log; unset: iptables. */
  readonly mode?: 'iptables' | 'ipvs' | 'nftables';
  readonly log: Log;
  readonly clock: Clock;
  readonly minSyncPeriodMs: number;
  readonly syncPeriodMs: number;
  /** Cheap to read, and different whenever somebody may have changed the kernel's rules. */
  readonly fingerprint?: () => number | undefined;
  /** The kernel itself tells of every change that others make, so nothing has to be verified now and then. */
  readonly isTold?: boolean | undefined;
  readonly observer?: FamilyObserver;
  /** Another program changed what we wrote; called with its name. */
  readonly onForeignChange?: ((program: string) => void) | undefined;
  readonly onSynced?: (outcome: SyncOutcome) => void;
}

const HOUR_MS = 3_600_000;
/** Reading the kernel back may take this part of one core's time, whatever the size of the cluster. */
const VERIFY_SHARE = 0.01;

export class FamilyLoop {
  readonly #options: FamilyLoopOptions;
  readonly #runner: Runner;
  /** Where a mode reports what other programs changed. */
  readonly foreignChanges: ForeignChanges;
  #verifyNotBefore = 0;
  #isStopping = false;
  /** The fingerprint under which everything was found in place. */
  #verified: number | undefined;

  constructor(options: FamilyLoopOptions) {
    this.#options = options;
    this.#runner = new Runner({
      run: () => this.#sync(),
      minIntervalMs: options.minSyncPeriodMs,
      retryIntervalMs: options.syncPeriodMs,
      maxIntervalMs: Math.max(HOUR_MS, options.minSyncPeriodMs),
      clock: options.clock,
      onError: (error) => this.#logFailure(error),
    });
    this.foreignChanges = new ForeignChanges({
      family: options.proxy.family,
      log: options.log,
      clock: options.clock,
      repair: () => this.requestUrgently(),
      onChange: options.onForeignChange,
    });
  }

  get #observer(): FamilyObserver {
    return this.#options.observer ?? NO_OBSERVER;
  }

  get proxy(): FamilyProxy {
    return this.#options.proxy;
  }

  setPeriods(periods: Pick<FamilyLoopOptions, 'minSyncPeriodMs' | 'syncPeriodMs'>): void {
    this.#runner.setIntervals({
      minIntervalMs: periods.minSyncPeriodMs,
      retryIntervalMs: periods.syncPeriodMs,
    });
  }

  start(): void {
    this.#observer.started();
    this.#runner.start();
  }

  request(): void {
    if (!this.proxy.isSynced) return;
    this.#observer.queued();
    this.#runner.request();
  }

  /** Something is broken that worked: it does not wait for its turn. */
  requestUrgently(): void {
    if (!this.proxy.isSynced) return;
    this.#observer.queued();
    this.#runner.requestUrgently();
  }

  /** Everything is read back and mended where it differs. */
  requestFull(): void {
    this.proxy.requestFull();
    this.request();
  }

  /** The same, unless nothing can have changed or the last one was too costly to repeat so soon. */
  verify(): void {
    if (this.#options.isTold || this.#options.clock.now() < this.#verifyNotBefore) return;
    const fingerprint = this.#options.fingerprint?.();
    if (fingerprint === undefined || fingerprint !== this.#verified) this.requestFull();
  }

  stop(): Promise<void> {
    this.#isStopping = true;
    this.foreignChanges.close();
    return this.#runner.stop();
  }

  async #sync(): Promise<void> {
    const { proxy, log, clock, mode = 'iptables' } = this.#options;
    if (!proxy.isSynced) {
      log.verbose(2, `Not syncing ${mode} until Services and Endpoints have been received`, {
        ipFamily: proxy.family,
      });
      return;
    }
    log.verbose(2, `Syncing ${mode} rules`, { ipFamily: proxy.family });
    let isPartial = false;
    do {
      const started = clock.now();
      const fingerprint = this.#options.fingerprint?.();
      this.foreignChanges.syncBegan();
      const outcome = await this.#write(started, isPartial ? 'next' : 'first');
      if (!outcome) return;
      this.#finish(outcome, fingerprint, clock.now() - started);
      this.#throwIfRefused(outcome);
      isPartial = outcome.isPartial ?? false;
    } while (isPartial && !this.#isStopping);
  }

  async #write(started: number, turn: 'first' | 'next'): Promise<SyncOutcome | undefined> {
    try {
      return await this.proxy.sync(turn);
    } catch (error) {
      this.#observer.failed(error, (this.#options.clock.now() - started) / 1000);
      throw error;
    }
  }

  #finish(outcome: SyncOutcome, fingerprint: number | undefined, elapsedMs: number): void {
    const { clock, onSynced } = this.#options;
    const { report } = outcome;
    if (report.kind === 'full') this.#verifyNotBefore = clock.now() + elapsedMs / VERIFY_SHARE;
    if (report.restores > 0) this.#verified = undefined;
    else if (report.kind === 'full') this.#verified = fingerprint;
    this.#logOutcome(outcome, elapsedMs);
    this.#tellOfRepairs(report);
    this.#observer.synced(outcome, elapsedMs / 1000);
    onSynced?.(outcome);
  }

  #tellOfRepairs({ repaired = [] }: SyncOutcome['report']): void {
    if (this.foreignChanges.syncEnded() || repaired.length === 0) return;
    this.foreignChanges.foundAndRepaired({ objects: repaired });
  }

  /** The others are served; this one is tried again. */
  #throwIfRefused({ report }: SyncOutcome): void {
    if (report.refused.size === 0) return;
    this.proxy.requestFull();
    const [[id, error] = ['', new Error('unknown')]] = report.refused;
    const others = report.refused.size > 1 ? ` (and ${report.refused.size - 1} more)` : '';
    throw new Error(`the kernel refuses the rules of ${id}${others}: ${error.message}`, { cause: error });
  }

  #logOutcome({ report, changes }: SyncOutcome, elapsedMs: number): void {
    const { log } = this.#options;
    log.verbose(2, 'SyncProxyRules complete', {
      ipFamily: this.proxy.family,
      elapsed: `${Math.round(elapsedMs * 10) / 10}ms`,
      fullSync: report.kind === 'full',
    });
    const { objects = 0 } = report;
    if (report.kind === 'nothing' || (report.kind === 'full' && report.restores + objects === 0)) return;
    log.verbose(1, 'Synced rules', {
      ipFamily: this.proxy.family,
      kind: report.kind,
      changedServicePorts: changes.length,
      chains: report.chains,
      rules: report.rules,
      restores: report.restores,
      ...(objects > 0 && { objects }),
      milliseconds: Math.round(elapsedMs * 10) / 10,
    });
  }

  #logFailure(error: unknown): void {
    const { log, syncPeriodMs } = this.#options;
    log.error('Sync failed', {
      ipFamily: this.proxy.family,
      err: error,
      ...(isJunctionError(error) && { whatToDo: error.hint }),
      retryingTime: `${syncPeriodMs / 1000}s`,
    });
  }
}
