/** What a family does, as metrics and health. */
import { isJunctionError } from '../errors.ts';
import type { HealthState } from '../telemetry/http/health.ts';
import { ChangeTimer, type JunctionMetrics } from '../telemetry/metrics/junctionMetrics.ts';
import { NoLocalEndpoints, type ProxyMetrics } from '../telemetry/metrics/proxyMetrics.ts';
import type { Family } from '../model/ip.ts';
import type { Plan, PlanChange } from '../plan/types.ts';
import type { Clock } from '../time/clock.ts';
import type { SyncOutcome } from './proxier.ts';
import type { SyncAttempt } from './report.ts';

interface TelemetryOptions {
  readonly family: Family;
  /** What is without local endpoints is counted by services in the ipvs mode, by their ports in the others. */
  readonly mode: 'iptables' | 'ipvs' | 'nftables';
  readonly metrics: ProxyMetrics;
  readonly own: JunctionMetrics;
  readonly health: HealthState;
  readonly clock: Clock;
  /** Milliseconds since the epoch. */
  readonly wallTime: () => number;
}

export class FamilyTelemetry {
  readonly #options: TelemetryOptions;
  readonly #labels: { readonly ip_family: Family };
  readonly #timer = new ChangeTimer();
  readonly #noLocal = new NoLocalEndpoints();
  #plan: Plan | undefined;
  #endpointsPending = 0;

  constructor(options: TelemetryOptions) {
    this.#options = options;
    this.#labels = { ip_family: options.family };
  }

  /** The runner is started; nothing is written yet. */
  started(): void {
    const { family, health } = this.#options;
    health.updated(family);
    this.#touch('sync_proxy_rules_last_queued_timestamp_seconds');
  }

  /** Whether or not it changed anything; once for each family. */
  serviceEvent(pending: number): void {
    const { metrics } = this.#options;
    metrics.sync_proxy_rules_service_changes_total.add({});
    metrics.sync_proxy_rules_service_changes_pending.set({}, pending);
  }

  endpointEvent(): void {
    const { metrics } = this.#options;
    this.#endpointsPending++;
    metrics.sync_proxy_rules_endpoint_changes_total.add({});
    metrics.sync_proxy_rules_endpoint_changes_pending.set({}, this.#endpointsPending);
  }

  /** A sync is requested. */
  queued(): void {
    const { family, health, clock } = this.#options;
    health.queued(family);
    this.#touch('sync_proxy_rules_last_queued_timestamp_seconds');
    this.#timer.received(clock.now());
  }

  /** What had changed is in the plan now. */
  planned(plan: Plan, changes: readonly PlanChange[]): void {
    const { metrics, clock } = this.#options;
    this.#plan = plan;
    this.#timer.planned(clock.now());
    this.#noLocal.apply(changes);
    this.#endpointsPending = 0;
    metrics.sync_proxy_rules_service_changes_pending.set({}, 0);
    metrics.sync_proxy_rules_endpoint_changes_pending.set({}, 0);
  }

  synced({ report, triggers }: SyncOutcome, seconds: number): void {
    const { family, mode, metrics, own, health, clock, wallTime } = this.#options;
    const labels = this.#labels;
    this.#measure(report.kind === 'full' ? 'full' : 'partial', seconds);
    this.#touch('sync_proxy_rules_last_timestamp_seconds');
    const count = (name: string): number => report.counts[name] ?? 0;
    for (const table of ['filter', 'nat']) {
      metrics.sync_proxy_rules_iptables_total?.set({ ...labels, table }, count(`owned.${table}`));
      metrics.sync_proxy_rules_iptables_last?.set({ ...labels, table }, count(`written.${table}`));
    }
    const refusals = count('restore.refusals');
    if (refusals > 0) metrics.sync_proxy_rules_iptables_restore_failures_total?.add(labels, refusals);
    if (count('partial.failures') > 0) this.#countPartialFailure();
    const noLocal = mode === 'ipvs' ? this.#noLocal.services : this.#noLocal.servicePorts;
    for (const [traffic_policy, value] of Object.entries(noLocal))
      metrics.sync_proxy_rules_no_local_endpoints_total.set({ ...labels, traffic_policy }, value);
    // From the change in the cluster to the kernel of this node.
    for (const trigger of triggers)
      metrics.network_programming_duration_seconds.observe(labels, (wallTime() - trigger) / 1000);
    for (const [stage, duration] of Object.entries(this.#timer.written(clock.now()) ?? {}))
      own.table.junction_change_duration_seconds.observe({ ...labels, stage }, duration);
    if (this.#plan) {
      own.table.junction_service_ports.set(labels, this.#plan.servicePorts.size);
      own.table.junction_endpoints.set(labels, this.#plan.endpointCount);
    }
    if (report.refused.size > 0) metrics.sync_proxy_rules_nftables_sync_failures_total?.add(labels);
    if (count('cleanup.failures') > 0) metrics.sync_proxy_rules_nftables_cleanup_failures_total?.add(labels);
    own.table.junction_refused_service_ports.set(labels, report.refused.size);
    own.table.junction_syncs_total.add({ ...labels, kind: report.kind });
    health.updated(family);
  }

  failed(error: unknown, seconds: number, attempt: SyncAttempt): void {
    const { metrics, own } = this.#options;
    this.#measure(attempt, seconds);
    if (attempt === 'partial') this.#countPartialFailure();
    metrics.sync_proxy_rules_nftables_sync_failures_total?.add(this.#labels);
    if (isJunctionError(error, 'IPTABLES_RESTORE_FAILED'))
      metrics.sync_proxy_rules_iptables_restore_failures_total?.add(this.#labels);
    own.table.junction_syncs_total.add({ ...this.#labels, kind: 'failed' });
  }

  #touch(timestamp: `sync_proxy_rules_last_${'queued_' | ''}timestamp_seconds`): void {
    const { metrics, wallTime } = this.#options;
    metrics[timestamp].set(this.#labels, wallTime() / 1000);
  }

  /** Every attempt that was not put off until the first full snapshot. */
  #measure(attempt: SyncAttempt, seconds: number): void {
    const { metrics } = this.#options;
    metrics.sync_proxy_rules_duration_seconds.observe(this.#labels, seconds);
    metrics[`sync_${attempt}_proxy_rules_duration_seconds`]?.observe(this.#labels, seconds);
  }

  /** A sync of what had changed, whatever it failed of, as in kube-proxy. */
  #countPartialFailure(): void {
    this.#options.metrics.sync_proxy_rules_iptables_partial_restore_failures_total?.add(this.#labels);
  }
}
