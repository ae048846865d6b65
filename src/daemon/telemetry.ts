/** Turns what a family's proxier reports into metrics and health. */
import { isRefusal } from '../modes/iptables/rules/sender.ts';
import type { HealthState } from '../telemetry/http/health.ts';
import { ChangeTimer, type JunctionMetrics } from '../telemetry/metrics/junctionMetrics.ts';
import { NoLocalEndpoints, type ProxyMetrics } from '../telemetry/metrics/proxyMetrics.ts';
import type { Family } from '../model/ip.ts';
import type { Plan, PlanChange } from '../plan/types.ts';
import type { FamilyObserver, SyncOutcome } from '../proxy/proxier.ts';
import type { SyncAttempt } from '../proxy/report.ts';
import type { Clock } from '../time/clock.ts';
import type { Mode } from '../modes/mode.ts';

interface TelemetryOptions {
  readonly family: Family;
  /** What is without local endpoints is counted by services in the ipvs mode, by their ports in the others. */
  readonly mode: Mode['name'];
  readonly metrics: ProxyMetrics;
  readonly own: JunctionMetrics;
  readonly health: HealthState;
  readonly clock: Clock;
  /** Milliseconds since the epoch. */
  readonly wallTime: () => number;
}

export class FamilyTelemetry implements FamilyObserver {
  readonly #options: TelemetryOptions;
  readonly #timer = new ChangeTimer();
  readonly #noLocal = new NoLocalEndpoints();
  #plan: Plan | undefined;
  #endpointsPending = 0;

  constructor(options: TelemetryOptions) {
    this.#options = options;
  }

  started(): void {
    const { family, metrics, health } = this.#options;
    health.updated(family);
    metrics.queued(family);
  }

  serviceEvent(pending: number): void {
    this.#options.metrics.serviceEvent();
    this.#options.metrics.servicesPending(pending);
  }

  endpointEvent(): void {
    this.#endpointsPending++;
    this.#options.metrics.endpointEvent();
    this.#options.metrics.endpointsPending(this.#endpointsPending);
  }

  queued(): void {
    const { family, metrics, health, clock } = this.#options;
    health.queued(family);
    metrics.queued(family);
    this.#timer.received(clock.now());
  }

  planned(plan: Plan, changes: readonly PlanChange[]): void {
    const { metrics, clock } = this.#options;
    this.#plan = plan;
    this.#timer.planned(clock.now());
    this.#noLocal.apply(changes);
    this.#endpointsPending = 0;
    metrics.servicesPending(0);
    metrics.endpointsPending(0);
  }

  synced({ report, triggers }: SyncOutcome, seconds: number): void {
    const { family, mode, metrics, own, health, clock, wallTime } = this.#options;
    const kind = report.kind === 'full' ? 'full' : 'partial';
    metrics.syncEnded({ family, kind, seconds, succeeded: true });
    const count = (name: string): number => report.counts[name] ?? 0;
    for (const table of ['filter', 'nat'] as const)
      metrics.rules(family, table, { owned: count(`owned.${table}`), written: count(`written.${table}`) });
    for (let refusal = 0; refusal < count('restore.refusals'); refusal++) metrics.restoreFailed(family);
    if (count('partial.failures') > 0) metrics.partialSyncFailed(family);
    metrics.noLocalEndpoints(family, mode === 'ipvs' ? this.#noLocal.services : this.#noLocal.servicePorts);
    for (const trigger of triggers) metrics.networkProgrammed(family, (wallTime() - trigger) / 1000);
    const times = this.#timer.written(clock.now());
    if (times) own.changeWritten(family, times);
    if (this.#plan) {
      own.planSize(family, {
        servicePorts: this.#plan.servicePorts.size,
        endpoints: this.#plan.endpointCount,
      });
    }
    if (report.refused.size > 0) metrics.nftablesSyncFailed(family);
    if (count('cleanup.failures') > 0) metrics.nftablesCleanupFailed(family);
    own.refused(family, report.refused.size);
    own.synced(family, report.kind);
    health.updated(family);
  }

  failed(error: unknown, seconds: number, attempt: SyncAttempt): void {
    const { family, metrics, own } = this.#options;
    metrics.syncEnded({ family, kind: attempt, seconds, succeeded: false });
    if (attempt === 'partial') metrics.partialSyncFailed(family);
    metrics.nftablesSyncFailed(family);
    if (isRefusal(error)) metrics.restoreFailed(family);
    own.synced(family, 'failed');
  }
}
