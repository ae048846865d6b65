/** Everything that serves one address family: its runner, its guard, its health-check ports, its held ports. */
import type { Settings } from '../config/index.ts';
import {
  healthCheckAddresses,
  type HealthCheckFailure,
  ServiceHealthServers,
} from '../telemetry/http/healthCheckNodePorts.ts';
import { type CleaningReport, FlowCleaner } from '../proxy/conntrack.ts';
import { concernsHeldPorts, HeldPorts, heldPortsOf } from '../system/heldPorts.ts';
import type { Log } from '../log/log.ts';
import type { Family, Ip } from '../model/ip.ts';
import type { ObjectKey } from '../model/objects.ts';
import { capacityOf, printCut } from '../plan/capacity.ts';
import { SyncRunner } from '../proxy/syncRunner.ts';
import { Proxier, type SyncOutcome } from '../proxy/proxier.ts';
import type { FamilyObserver } from '../proxy/observer.ts';
import { systemClock } from '../time/systemClock.ts';
import { DenialLog } from './denialLog.ts';
import { Monitor } from './monitor.ts';
import type { ProxyMode } from '../modes/mode.ts';

export interface FamilyRuntimeOptions {
  readonly family: Family;
  readonly mode: ProxyMode;
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

export class FamilyRuntime {
  readonly family: Family;
  readonly runner: SyncRunner;
  readonly #options: FamilyRuntimeOptions;
  #monitor: Monitor;
  #monitorIntervalMs: number;
  readonly #held: HeldPorts | undefined;
  readonly #flows: FlowCleaner;
  #health: ServiceHealthServers | undefined;
  /** Where node ports answer may have changed. */
  #heldIsStale = true;
  readonly #denials: DenialLog;
  #isFirst = true;
  /** Somebody else may have taken rules away, so that flows began past them. */
  #wereRulesGone = false;

  constructor(options: FamilyRuntimeOptions) {
    const { family, mode, settings, observer, log, syncPeriodMs, minSyncPeriodMs } = options;
    this.#options = options;
    this.family = family;
    const proxier = new Proxier({
      family,
      settings,
      backend: mode.backend(family),
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
      generation: mode.generation?.(family),
      requestJumps: mode.requestJumps?.(family),
      isTold: mode.isTold,
      onForeignChange: (program) => {
        this.#wereRulesGone = true;
        options.onForeignChange(program);
      },
      onSynced: (outcome) => this.#onSynced(outcome),
    });
    mode.attach(this.runner);
    this.#denials = new DenialLog({ denied: (id) => proxier.denied(id), log, clock: systemClock });
    this.#monitorIntervalMs = syncPeriodMs;
    this.#monitor = this.#makeMonitor();
    this.#flows = new FlowCleaner({ family: this.family, localIps: () => mode.localIps(this.family), log });
    this.#held = options.holdPorts ? makeHeldPorts(options) : undefined;
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
    void this.#denials.tell(outcome.changes.map(({ id }) => id));
    this.#tellCuts();
    this.#tellRefusals(outcome);
    const { localEndpoints, plan } = this.runner.proxier;
    const { report } = outcome;
    const areFlowsUnknown =
      this.#isFirst ||
      this.#wereRulesGone ||
      (report.kind === 'full' && report.rules + (report.objects ?? 0) > 0);
    this.#wereRulesGone = false;
    void this.#flows.clean(outcome.changes, plan, areFlowsUnknown).then((cleaned) => {
      if (cleaned) this.#options.onConntrack(cleaned);
    });
    this.#health ??= this.#makeHealthServers();
    this.#health.setAddresses(this.#healthCheckAddresses());
    void this.#health.sync(localEndpoints.ports, localEndpoints.counts);
    const isStale = this.#heldIsStale || outcome.changes.some(concernsHeldPorts);
    if (this.#held && (isStale || this.#held.refused > 0)) {
      this.#held.reconcile(heldPortsOf(plan, this.#options.mode.localIps(this.family)));
    }
    this.#heldIsStale = false;
    if (this.#isFirst) {
      this.#logReady(outcome);
      this.#options.mode.ready?.(this.family);
      this.#options.onReady();
    }
    this.#isFirst = false;
  }

  #makeMonitor(): Monitor {
    const { mode, log } = this.#options;
    return new Monitor({
      canary: mode.canary?.(this.family),
      runner: this.runner,
      intervalMs: this.#monitorIntervalMs,
      verifiesAlways: mode.verifiesEachPeriod ?? false,
      // Ports that others had.
      hasRetries: () => (this.#held?.refused ?? 0) > 0 || (this.#health?.hasFailures ?? false),
      log,
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
    return healthCheckAddresses(
      this.runner.proxier.plan.view.nodePorts,
      this.#options.mode.localIps(this.family),
    );
  }

  #logReady({ report }: SyncOutcome): void {
    const { log, settings } = this.#options;
    const { plan } = this.runner.proxier;
    log.info('Serving', {
      ipFamily: this.family,
      servicePorts: plan.servicePorts.size,
      endpoints: plan.endpointCount,
      chainsWritten: report.chains,
      rulesWritten: report.rules,
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
  #tellRefusals({ changes }: SyncOutcome): void {
    const told = new Set<string>();
    for (const { previous, current } of changes) {
      for (const ip of current?.refusedIPs ?? []) {
        const service = current?.service ?? '';
        if (previous?.refusedIPs?.includes(ip) || told.has(`${service} ${ip}`)) continue;
        told.add(`${service} ${ip}`);
        const reason = `${ip} is the address of the API server, and in the IPVS mode this node would answer there itself`;
        this.#options.log.warn('An address of a Service is not served', { service, address: ip, reason });
        this.#options.onRefused(service, reason);
      }
    }
  }

  #tellCuts(): void {
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
    onEvent: (event) => {
      if (event.kind === 'recovered') {
        log.info(event.message);
        return;
      }
      log.warn(event.message);
      onPortTaken(event.message);
    },
  });
}
