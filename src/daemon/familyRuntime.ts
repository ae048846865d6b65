/** Everything that serves one address family: syncs, monitoring, health-check ports, held ports. */
import type { Settings } from '../config/settings.ts';
import {
  healthCheckAddresses,
  type HealthCheckFailure,
  ServiceHealthServers,
} from '../telemetry/http/healthCheckNodePorts.ts';
import { type CleaningReport, FlowCleaner } from '../proxy/conntrack.ts';
import { concernsHeldPorts, HeldPorts, heldPortsOf } from '../system/heldPorts.ts';
import type { Log } from '../log/log.ts';
import type { Cidr, Family, Ip } from '../model/ip.ts';
import type { ObjectKey } from '../model/objects.ts';
import { capacityOf, printCut } from '../plan/capacity.ts';
import {
  type FamilyEvents,
  type FlushMonitor,
  SyncRunner,
  VERIFICATION,
  type Verification,
} from '../proxy/syncRunner.ts';
import { type FamilyObserver, Proxier, type SyncOutcome } from '../proxy/proxier.ts';
import type { ChangedBy, ForeignChange } from '../proxy/foreignChanges.ts';
import { systemClock } from '../time/systemClock.ts';
import { DenialLog } from './denialLog.ts';
import type { Mode, ModeFamily } from '../modes/mode.ts';

interface FamilyRuntimeOptions {
  readonly family: Family;
  readonly mode: Mode;
  readonly settings: Settings;
  readonly syncPeriodMs: number;
  readonly minSyncPeriodMs: number;
  readonly holdPorts: boolean;
  readonly observer: FamilyObserver;
  readonly isHealthy: () => boolean;
  readonly onHealthCheckFailure: (failure: HealthCheckFailure) => void;
  readonly onPortTaken: (message: string) => void;
  /** Something of a Service is beyond what one Service may have; empty where that is over. */
  readonly onCut: (service: ObjectKey, messages: readonly string[]) => void;
  /** An address of a Service must not be served here. */
  readonly onRefused: (service: ObjectKey, reason: string) => void;
  readonly onForeignChange: (program: string) => void;
  readonly onConntrack: (report: CleaningReport) => void;
  /** The first rules are in the kernel. */
  readonly onReady: () => void;
  readonly log: Log;
}

export class FamilyRuntime implements FamilyEvents {
  readonly family: Family;
  readonly runner: SyncRunner;
  readonly #options: FamilyRuntimeOptions;
  readonly #mode: ModeFamily;
  #monitor: Monitor;
  #monitorIntervalMs: number;
  readonly #held: HeldPorts | undefined;
  readonly #flows: FlowCleaner;
  #health: ServiceHealthServers | undefined;
  /** Where node ports answer may have changed. */
  #heldIsStale = true;
  readonly #denials: DenialLog;
  #isFirst = true;
  /** Another program may have deleted rules, so that flows began past them. */
  #wereRulesGone = false;

  constructor(options: FamilyRuntimeOptions) {
    const { family, mode, settings, observer, log, syncPeriodMs, minSyncPeriodMs } = options;
    this.#options = options;
    this.family = family;
    this.#mode = mode.open(family, this);
    const { verification } = this.#mode;
    const proxier = new Proxier({
      family,
      settings,
      writer: this.#mode.writer,
      capacity: capacityOf(mode.name, family),
      observer,
      startedAt: Date.now(),
    });
    this.runner = new SyncRunner({
      proxier,
      mode: mode.name,
      log,
      clock: systemClock,
      minSyncPeriodMs,
      syncPeriodMs,
      observer,
      ...verification,
      onForeignChange: (program) => {
        this.#wereRulesGone = true;
        options.onForeignChange(program);
      },
      onSynced: (outcome) => this.#onSynced(outcome),
    });
    this.#denials = new DenialLog({ denied: (id) => proxier.denied(id), log, clock: systemClock });
    this.#monitorIntervalMs = syncPeriodMs;
    this.#monitor = this.#makeMonitor();
    this.#flows = new FlowCleaner({ family: this.family, localIps: () => this.#mode.localIps(), log });
    this.#held = options.holdPorts ? makeHeldPorts(options) : undefined;
  }

  request(cause: string): void {
    this.runner.request(cause);
  }

  requestUrgently(cause: string): void {
    this.runner.requestUrgently(cause);
  }

  foreignChange(change: ForeignChange): void {
    this.runner.foreignChange(change);
  }

  suspect(changedBy: ChangedBy | undefined): void {
    this.runner.suspect(changedBy);
  }

  /** Where cluster IPs come from. */
  setServiceCidrs(cidrs: readonly Cidr[]): void {
    this.#mode.setServiceCidrs?.(cidrs);
  }

  start(): void {
    this.runner.start();
    this.#monitor.start();
  }

  /** The configuration changed. */
  apply(settings: Settings, periods: Parameters<SyncRunner['setPeriods']>[0]): void {
    this.runner.proxier.onSettings(settings);
    this.runner.setPeriods(periods);
    this.#heldIsStale = true;
    this.runner.request();
    if (periods.syncPeriodMs === this.#monitorIntervalMs) return;
    this.#monitorIntervalMs = periods.syncPeriodMs;
    void this.#monitor.stop();
    this.#monitor = this.#makeMonitor();
    if (this.runner.isStarted) this.#monitor.start();
  }

  async stop(): Promise<void> {
    await this.#monitor.stop();
    await this.runner.stop();
    await this.#health?.close();
    this.#held?.close();
  }

  #onSynced(outcome: SyncOutcome): void {
    void this.#denials.note(outcome.changes.map(({ id }) => id));
    this.#logCuts();
    this.#logRefusals(outcome);
    const { localEndpoints, plan } = this.runner.proxier;
    const { report } = outcome;
    const areFlowsUnknown =
      this.#isFirst || this.#wereRulesGone || (report.kind === 'full' && report.objects > 0);
    this.#wereRulesGone = false;
    void this.#flows.clean(outcome.changes, plan, areFlowsUnknown).then((cleaned) => {
      if (cleaned) this.#options.onConntrack(cleaned);
    });
    this.#health ??= this.#makeHealthServers();
    this.#health.setAddresses(this.#healthCheckAddresses());
    void this.#health.sync(localEndpoints.ports, localEndpoints.counts);
    const isStale = this.#heldIsStale || outcome.changes.some(concernsHeldPorts);
    if (this.#held && (isStale || this.#held.refused > 0)) {
      this.#held.reconcile(heldPortsOf(plan, this.#mode.localIps()));
    }
    this.#heldIsStale = false;
    if (this.#isFirst) {
      this.#logReady(outcome);
      this.#mode.ready();
      this.#options.onReady();
    }
    this.#isFirst = false;
  }

  #makeMonitor(): Monitor {
    return new Monitor({
      runner: this.runner,
      verification: this.#mode.verification,
      intervalMs: this.#monitorIntervalMs,
      // Ports that other programs had.
      hasRetries: () => (this.#held?.refused ?? 0) > 0 || (this.#health?.hasFailures ?? false),
    });
  }

  /** Late, because the node's own address may decide where they listen. */
  #makeHealthServers(): ServiceHealthServers {
    const { settings, isHealthy, log, onHealthCheckFailure } = this.#options;
    return new ServiceHealthServers({
      family: this.family,
      nodeName: settings.nodeName,
      addresses: this.#healthCheckAddresses(),
      isHealthy,
      log,
      onFailure: onHealthCheckFailure,
    });
  }

  #healthCheckAddresses(): 'all' | readonly Ip[] {
    return healthCheckAddresses(this.runner.proxier.plan.view.nodePorts, this.#mode.localIps());
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

  /** Once for each service, when it begins. */
  #logRefusals({ changes }: SyncOutcome): void {
    const logged = new Set<string>();
    for (const { previous, current } of changes) {
      for (const ip of current?.refusedIPs ?? []) {
        const service = current?.service ?? '';
        if (previous?.refusedIPs?.includes(ip) || logged.has(`${service} ${ip}`)) continue;
        logged.add(`${service} ${ip}`);
        const reason = `${ip} is the address of the API server, and in the IPVS mode this node would answer there itself`;
        this.#options.log.warn('An address of a Service is not served', { service, address: ip, reason });
        this.#options.onRefused(service, reason);
      }
    }
  }

  #logCuts(): void {
    const { log, onCut } = this.#options;
    const { proxier } = this.runner;
    for (const service of proxier.takeNewCuts()) {
      const messages = proxier.cutsOf(service).map(printCut);
      for (const reason of messages)
        log.warn('A Service is too large; not all of it is served', {
          ipFamily: this.family,
          service,
          reason,
        });
      if (messages.length === 0)
        log.info('All of a Service is served again', { ipFamily: this.family, service });
      onCut(service, messages);
    }
  }
}

function makeHeldPorts({ log, onPortTaken }: FamilyRuntimeOptions): HeldPorts {
  return new HeldPorts({
    onEvent: (kind, message) => {
      if (kind === 'recovered') return log.info(message);
      log.warn(message);
      onPortTaken(message);
    },
  });
}

/* Notices that another program changed our rules: all of them at once by a canary, a few by reading them back. */

interface MonitorOptions {
  readonly runner: SyncRunner;
  readonly verification: Verification;
  readonly intervalMs: number;
  /** Whether a sync has something to try again, though nothing has changed. */
  readonly hasRetries: () => boolean;
}

class Monitor {
  readonly #options: MonitorOptions;
  readonly #flushes: FlushMonitor | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: MonitorOptions) {
    this.#options = options;
    const { verification, runner, intervalMs } = options;
    this.#flushes = verification.flushMonitor?.(intervalMs, () => runner.flushed());
  }

  start(): void {
    this.#flushes?.start();
    this.#timer = setInterval(() => this.#look(), this.#options.intervalMs);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#flushes?.stop();
  }

  #look(): void {
    const { runner, hasRetries, verification } = this.#options;
    if (verification.isEachPeriod) runner.requestFull(VERIFICATION);
    else runner.verify();
    if (hasRetries()) runner.request('ports that another program had');
  }
}
