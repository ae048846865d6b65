/** Everything that serves one address family: syncs, monitoring, health-check ports, held ports. */
import type { ValidConfig } from '../config/effective.ts';
import type { Settings } from '../config/settings.ts';
import type { Log } from '../log/log.ts';
import type { Cidr, Family } from '../model/ip.ts';
import type { Mode, ModeFamily } from '../modes/mode.ts';
import { capacityOf } from '../plan/capacity.ts';
import type { FamilySubject } from '../explain/subject.ts';
import type { FamilyStatus } from '../explain/status.ts';
import type { ChangeRecord, WatchEvent } from '../explain/types.ts';
import { FamilyActivity } from '../proxy/activity.ts';
import { FlowCleaner } from '../proxy/conntrack.ts';
import { PendingChanges } from '../proxy/pendingChanges.ts';
import { Proxier, type SyncOutcome } from '../proxy/proxier.ts';
import { type FlushMonitor, SyncRunner } from '../proxy/syncRunner.ts';
import type { SideWork } from '../proxy/openWork.ts';
import { FamilyTelemetry } from '../proxy/telemetry.ts';
import { HeldPorts, heldPortsOf } from '../system/heldPorts.ts';
import { failedToHoldPort, failedToStartServiceHealthcheck } from '../telemetry/events/event.ts';
import type { EventRecorder } from '../telemetry/events/recorder.ts';
import type { HealthState } from '../telemetry/http/health.ts';
import { healthCheckAddresses, ServiceHealthServers } from '../telemetry/http/healthCheckNodePorts.ts';
import { systemTimestamps } from '../telemetry/http/timestamp.ts';
import type { JunctionMetrics } from '../telemetry/metrics/junctionMetrics.ts';
import type { ProxyMetrics } from '../telemetry/metrics/proxyMetrics.ts';
import { systemClock } from '../time/systemClock.ts';
import type { MemoryReturn } from './memory.ts';
import { UnservedReports } from './unserved.ts';

interface FamilyRuntimeOptions {
  readonly mode: Mode;
  readonly config: ValidConfig;
  readonly settings: Settings;
  readonly metrics: ProxyMetrics;
  readonly own: JunctionMetrics;
  readonly health: HealthState;
  readonly recorder: EventRecorder;
  /** The first rules of a family are in the kernel. */
  readonly onReady: (family: Family) => void;
  /** What happens, for who watches. */
  readonly emit: (event: WatchEvent) => void;
  readonly memory: MemoryReturn;
  /** Work has ended that somebody may wait for. */
  readonly onApplied: () => void;
  /** Numbers for changes, of all families. */
  readonly nextChangeId: () => number;
  readonly log: Log;
}

export class FamilyRuntime {
  readonly family: Family;
  readonly runner: SyncRunner;
  /** Recent changes. */
  readonly #activity: FamilyActivity;
  readonly #options: FamilyRuntimeOptions;
  readonly #mode: ModeFamily;
  readonly #unserved: UnservedReports;
  readonly #flows: FlowCleaner;
  readonly #health: ServiceHealthServers;
  readonly #held: HeldPorts | undefined;
  #monitorIntervalMs: number;
  #monitorTimer: NodeJS.Timeout | undefined;
  #flushMonitor: FlushMonitor | undefined;
  #monitorSetUp: Promise<void> = Promise.resolve();
  /** Where node ports answer may have changed. */
  #heldIsStale = true;
  #isFirst = true;
  /** Another program may have deleted rules, so that flows began past them. */
  #wereRulesGone = false;

  constructor(family: Family, options: FamilyRuntimeOptions) {
    const { mode, config, settings, metrics, own, health, recorder, emit, log } = options;
    const { nodeName } = settings;
    this.#options = options;
    this.family = family;
    this.#mode = mode.open(family, {
      request: (cause, isUrgent) => this.runner.request(cause, isUrgent),
      foreignChange: (change) => this.runner.foreignChanges.noticed(change),
      notificationsLost: () => this.runner.notificationsLost(),
    });
    const time = { clock: systemClock, wallTime: () => Number(systemTimestamps().wallNs) / 1e6 };
    // Tenths of a millisecond are enough for people.
    const wallTime = (): number => Math.round(10 * time.wallTime()) / 10;
    this.#activity = new FamilyActivity({ family, wallTime, emit });
    const pendingChanges = new PendingChanges({
      family,
      clock: systemClock,
      wallTime,
      nextId: options.nextChangeId,
      onRecord: (record: ChangeRecord) => emit({ kind: 'change', ...record }),
    });
    const telemetry = new FamilyTelemetry({ family, mode: mode.name, metrics, own, health, ...time });
    const proxier = new Proxier({
      family,
      settings,
      writer: this.#mode.writer,
      capacity: capacityOf(mode.name, family),
      telemetry,
      startedAt: Date.now(),
      pendingChanges,
    });
    this.runner = new SyncRunner({
      proxier,
      mode: mode.name,
      log,
      clock: systemClock,
      minSyncPeriodMs: config.minSyncPeriodMs,
      syncPeriodMs: config.syncPeriodMs,
      telemetry,
      activity: this.#activity,
      ...this.#mode.verification,
      onForeignChange: (program) => {
        this.#wereRulesGone = true;
        own.foreignChange(family, program);
      },
      onSynced: (outcome) => this.#onSynced(outcome),
      onApplied: options.onApplied,
    });
    this.#monitorIntervalMs = config.syncPeriodMs;
    this.#unserved = new UnservedReports({ family, nodeName, plan: proxier.plan, recorder, log });
    this.#flows = new FlowCleaner({
      family,
      localIps: () => this.#mode.localIps(),
      log,
      table: this.#mode.flows,
    });
    this.#health = new ServiceHealthServers({
      family,
      nodeName,
      addresses: [],
      isHealthy: () => health.isHealthy(),
      log,
      onFailure: ({ service, port, error }) =>
        recorder.record(failedToStartServiceHealthcheck(nodeName, service, port, error)),
    });
    if (!config.junction.holdPorts) return;
    this.#held = new HeldPorts({
      onEvent: (kind, message) => {
        if (kind === 'recovered') return log.info(message);
        log.warn(message);
        recorder.record(failedToHoldPort(nodeName, message));
      },
    });
  }

  get isSyncing(): boolean {
    return this.#activity.isSyncing;
  }

  get status(): FamilyStatus {
    const { plan, serviceCount } = this.runner.proxier;
    return {
      family: this.family,
      services: serviceCount,
      servicePorts: plan.servicePorts.size,
      endpoints: plan.endpointCount,
      isNotified: this.#mode.verification.isNotified ?? false,
      takenPorts: this.#takenPorts(),
      isDraining: this.#mode.writer.isDraining ?? false,
      ...this.#activity.status,
    };
  }

  /** Ports that other programs have, a sentence each. */
  #takenPorts(): readonly string[] {
    const held = this.#held?.refused ?? 0;
    return [
      ...(held > 0 ? [`${held === 1 ? 'a port' : `${held} ports`} of services cannot be held`] : []),
      ...(this.#health.hasFailures ? ['not every health-check node port can be opened'] : []),
    ];
  }

  /** What questions about it are answered from. */
  get subject(): FamilySubject {
    const { plan, inputs } = this.runner.proxier;
    const { kernel } = this.#mode;
    return {
      family: this.family,
      plan,
      host: { addresses: this.#mode.localIps() },
      ...inputs,
      refused: this.#activity.refused,
      ...(kernel && { kernel }),
    };
  }

  /** Where cluster IPs come from. */
  setServiceCidrs(cidrs: readonly Cidr[]): void {
    this.#mode.setServiceCidrs?.(cidrs);
  }

  start(): void {
    this.runner.start();
    this.#startMonitor();
  }

  /** The configuration changed. */
  apply(settings: Settings, config: ValidConfig): void {
    this.runner.proxier.onSettings(settings);
    this.runner.setPeriods(config);
    this.#heldIsStale = true;
    this.runner.request();
    if (config.syncPeriodMs === this.#monitorIntervalMs) return;
    this.#monitorIntervalMs = config.syncPeriodMs;
    void this.#stopMonitor();
    if (this.runner.isStarted) this.#startMonitor();
  }

  async stop(): Promise<void> {
    await this.#stopMonitor();
    await this.runner.stop();
    await this.#health.close();
    this.#held?.close();
  }

  /** Notices that another program flushed our rules. */
  #startMonitor(): void {
    const { flushMonitor } = this.#mode.verification;
    this.#flushMonitor = flushMonitor?.(this.#monitorIntervalMs, () => this.runner.flushed());
    this.#monitorSetUp = this.#flushMonitor?.start() ?? Promise.resolve();
    this.#monitorTimer = setInterval(() => this.#periodPassed(), this.#monitorIntervalMs);
  }

  async #stopMonitor(): Promise<void> {
    clearInterval(this.#monitorTimer);
    await this.#flushMonitor?.stop();
  }

  #periodPassed(): void {
    this.runner.periodPassed();
    if ((this.#held?.refused ?? 0) > 0 || this.#health.hasFailures)
      this.runner.request('ports that another program had');
  }

  #onSynced(outcome: SyncOutcome): readonly SideWork[] {
    const { metrics, onReady, memory } = this.#options;
    const { changes, report } = outcome;
    memory.synced(this.#isFirst || report.kind === 'full', report.objects);
    const { localEndpoints, plan } = this.runner.proxier;
    this.#unserved.report(changes);
    const areFlowsUnknown =
      this.#isFirst || this.#wereRulesGone || (report.kind === 'full' && report.objects > 0);
    const hadNoRules = this.#wereRulesGone && this.#options.mode.name !== 'ipvs';
    this.#wereRulesGone = false;
    const flows = this.#flows.clean(changes, plan, areFlowsUnknown, hadNoRules).then((cleaned) => {
      if (!cleaned) return;
      const labels = { ip_family: this.family };
      metrics.conntrack_reconciler_sync_duration_seconds.observe(labels, cleaned.seconds);
      metrics.conntrack_reconciler_deleted_entries_total.add(labels, cleaned.deleted);
      this.#activity.flowsCleaned(cleaned.deleted, cleaned.seconds * 1000);
    });
    const localIps = this.#mode.localIps();
    this.#health.setAddresses(healthCheckAddresses(plan.view.nodePorts, localIps));
    const ports = this.#health.sync(localEndpoints.ports, localEndpoints.counts);
    const sideWork = [
      ...(this.#mode.writer.sideWork ?? []),
      { what: 'flows to endpoints that are gone are being deleted', done: flows },
      { what: 'health-check node ports are being opened', done: ports },
    ];
    const isStale = this.#heldIsStale || changes.length > 0;
    if (this.#held && (isStale || this.#held.refused > 0)) this.#held.reconcile(heldPortsOf(plan, localIps));
    this.#heldIsStale = false;
    if (!this.#isFirst) return sideWork;
    this.#isFirst = false;
    this.#logReady(outcome);
    const removed = this.#mode.ready();
    onReady(this.family);
    return [
      ...sideWork,
      { what: 'what other modes left is being removed', done: removed },
      { what: 'what notices that rules were flushed is being set up', done: this.#monitorSetUp },
    ];
  }

  #logReady({ report }: SyncOutcome): void {
    const { log, settings } = this.#options;
    const { plan } = this.runner.proxier;
    log.info('Serving', {
      ipFamily: this.family,
      servicePorts: plan.servicePorts.size,
      endpoints: plan.endpointCount,
      objectsWritten: report.objects,
    });
    if (plan.view.localDetector.kind !== 'none') return;
    log.info('Pods cannot be told from other sources, so traffic to cluster IPs is not masqueraded', {
      ipFamily: this.family,
      why:
        settings.detectLocal.mode === 'NodeCIDR'
          ? `no Node ${settings.nodeName} with spec.podCIDRs of this family is known`
          : '--cluster-cidr has no CIDR of this family',
    });
  }
}
