/** The running proxy: starts its parts in order, and ends them in reverse. */
import type { ValidConfig } from '../config/effective.ts';
import { gateStates } from '../config/featureGates.ts';
import { type Settings, toSettings } from '../config/settings.ts';
import { END_LIMITS, END_LIMITS_OF_FAILURE, EventRecorder } from '../telemetry/events/recorder.ts';
import {
  addressNotServed,
  failedToHoldPort,
  failedToStart,
  failedToStartServiceHealthcheck,
  serviceTooLarge,
  starting,
} from '../telemetry/events/event.ts';
import { NFACCT } from '../modes/iptables/rules/names.ts';
import { HealthState } from '../telemetry/http/health.ts';
import type { MetricsPageOptions } from '../telemetry/http/metricsServer.ts';
import { systemTimestamps } from '../telemetry/http/timestamp.ts';
import type { HealthCheckFailure } from '../telemetry/http/healthCheckNodePorts.ts';
import { FirewalldListener } from '../system/firewalld.ts';
import { readNfacct } from '../netlink/nfacct.ts';
import type { Log } from '../log/log.ts';
import { addBuildInfo, addFeatures } from '../telemetry/metrics/componentMetrics.ts';
import { Connections } from '../telemetry/metrics/connections.ts';
import { faultMetrics, type JunctionMetrics } from '../telemetry/metrics/junctionMetrics.ts';
import { processMetrics, RuntimeMetrics } from '../telemetry/metrics/processMetrics.ts';
import { type ProxyMetrics, registerProxyMetrics } from '../telemetry/metrics/proxyMetrics.ts';
import type { Registry } from '../telemetry/metrics/instruments.ts';
import type { Family } from '../model/ip.ts';
import type { Node, ObjectKey } from '../model/objects.ts';
import { DualStackProxier } from '../proxy/dualStackProxier.ts';
import type { SourceProblem } from '../sources/source.ts';
import { systemClock } from '../time/systemClock.ts';
import { BUILD, KUBERNETES_VERSION, VERSION } from '../version.ts';
import { ConfigWatch } from './configWatch.ts';
import { FamilyRuntime } from './familyRuntime.ts';
import { servedFamilies } from '../modes/familyState.ts';
import type { Mode } from '../modes/mode.ts';
import { LeftOutFamilies, primaryFamily } from './leftOutFamilies.ts';
import { NodeGate } from './nodeGate.ts';
import { applyPostponed, type Postponed, logLocalhostRanges } from './preparation.ts';
import { makeServers } from './servers.ts';
import type { OpenedSource } from './source.ts';
import type { Supervision } from './supervision.ts';
import { FamilyTelemetry } from './telemetry.ts';

export interface DaemonOptions {
  readonly config: ValidConfig;
  readonly nodeName: string;
  readonly configFile: string | undefined;
  /** Reads flags and file again; throws with what is wrong. */
  readonly reload: () => ValidConfig;
  readonly flags: MetricsPageOptions['flags'];
  readonly initOnly: boolean;
  readonly log: Log;
  /** Ends it. */
  readonly signal: AbortSignal;
  /** Records what the daemon does, so that the log can name what hangs. */
  readonly supervision: Pick<Supervision, 'doing' | 'stopping' | 'previous'>;
}

/** Something that was started. */
interface Part {
  readonly name: string;
  readonly stop: () => void | Promise<void>;
}

export interface DaemonParts {
  readonly opened: OpenedSource;
  readonly registry: Registry;
  readonly own: JunctionMetrics;
  readonly mode: Mode;
  /** Kernel settings that wait for the first rules. */
  readonly postponed: Postponed;
}

export class Daemon {
  readonly #options: DaemonOptions;
  readonly #log: Log;
  #config: ValidConfig;
  readonly #registry: Registry;
  readonly #runtime = new RuntimeMetrics();
  readonly #own: JunctionMetrics;
  readonly #health: HealthState;
  readonly #recorder: EventRecorder;
  readonly #families: readonly FamilyRuntime[];
  readonly #leftOut: LeftOutFamilies;
  readonly #proxy: DualStackProxier;
  readonly #metrics: ProxyMetrics;
  /** What has been started, to be stopped in reverse. */
  readonly #running: Part[] = [];
  #isOver = false;
  #end: (exitCode: number) => void = () => {};
  readonly #ended = new Promise<number>((resolve) => {
    this.#end = resolve;
  });

  readonly #opened: OpenedSource;
  readonly #mode: Mode;
  #postponed: Postponed | undefined;

  constructor(options: DaemonOptions, { opened, registry, own, mode, postponed }: DaemonParts) {
    this.#opened = opened;
    this.#registry = registry;
    this.#own = own;
    this.#mode = mode;
    this.#postponed = postponed;
    const { config, nodeName, log } = options;
    this.#options = options;
    this.#config = config;
    this.#log = log;
    this.#health = new HealthState({ syncPeriodMs: config.syncPeriodMs, now: systemTimestamps });
    this.#health.resources = () => opened.resources();
    this.#recorder = new EventRecorder({ nodeName, clock: systemClock, log });
    const metrics = this.#makeMetrics();
    this.#leftOut = this.#makeLeftOut();
    this.#families = mode.families
      .filter(({ isStartable }) => isStartable)
      .map(({ family }) => this.#makeFamily(family, metrics));
    this.#proxy = new DualStackProxier({
      nodeName,
      runners: this.#families.map(({ runner }) => runner),
      log,
      onProblem: (problem) => this.#recordProblem(problem),
    });
    this.#metrics = metrics;
  }

  async run(): Promise<number> {
    const { nodeName, signal, supervision } = this.#options;
    const { source, tellsOfNode, sendEvent } = this.#opened;
    this.#startServers();
    signal.addEventListener('abort', () => this.#end(0), { once: true });
    if (signal.aborted) this.#end(0);
    const gate = this.#makeGate(tellsOfNode);
    this.#started('the gate before the proxy', () => gate.close());
    this.#started('the source of objects', () => source.stop());
    supervision.doing('reading objects for the first time');
    // A signal does not wait for a thousand manifests to be read.
    await Promise.race([source.start(gate), this.#ended]);
    // Also at an end that comes so early: the event says why.
    if (sendEvent) this.#recorder.start(sendEvent);
    this.#started('the recorder of events', () =>
      this.#recorder.stop(this.#isOver ? END_LIMITS_OF_FAILURE : END_LIMITS),
    );
    if (this.#isOver || signal.aborted) return this.#ended;
    this.#recorder.record(starting(nodeName));
    for (const family of this.#families) {
      if (!this.#leftOut.get(family.family)) family.start();
      this.#started(`the proxy for ${family.family}`, () => family.stop());
    }
    this.#leftOut.start();
    this.#started('the questions for families that are left out', () => this.#leftOut.stop());
    this.#watchFirewalld();
    this.#watchConfig();
    supervision.doing('serving');
    return this.#ended;
  }

  async stop(): Promise<void> {
    this.#log.info('Stopping; the rules stay in place');
    for (const { name, stop } of this.#running.reverse()) {
      this.#options.supervision.doing(`stopping ${name}`);
      await stop();
    }
    this.#runtime.close();
  }

  #started(name: string, stop: Part['stop']): void {
    this.#running.push({ name, stop });
  }

  #fail(error: Error): void {
    this.#log.error(error.message);
    this.#isOver = true;
    this.#end(1);
  }

  #makeMetrics(): ProxyMetrics {
    this.#registry.add(processMetrics);
    this.#registry.add(this.#runtime);
    this.#registry.add(faultMetrics);
    this.#own.previousCrashes(this.#options.supervision.previous.crashes);
    addBuildInfo(this.#registry, { version: VERSION, kubernetesVersion: KUBERNETES_VERSION, ...BUILD });
    addFeatures(this.#registry, gateStates(this.#config.featureGates));
    const { connections } = this.#mode;
    if (connections) this.#registry.add(new Connections({ read: connections, now: () => systemClock.now() }));
    const packets = (name: string) => (): bigint | undefined => readNfacct(name)?.packets;
    return registerProxyMetrics(this.#registry, this.#config.mode, {
      invalidDropped: packets(NFACCT.invalidDropped),
      localhostNodePorts: packets(NFACCT.localhostNodePorts),
    });
  }

  #makeLeftOut(): LeftOutFamilies {
    return new LeftOutFamilies({
      families: this.#mode.families.flatMap(({ family, answer }) =>
        answer.state === 'works' ? [] : { family, answer },
      ),
      ask: (family) => this.#mode.probe(family),
      onServed: (served) => this.#families.find(({ family }) => family === served)?.start(),
      onAnswer: (family, { state, reason }) =>
        this.#health.leftOut(family, { reason, isAnswered: state === 'absent' }),
      log: this.#log,
    });
  }

  /** kube-proxy ends too where the node's primary family cannot be served. */
  #servesPrimary(node: Node | undefined): boolean {
    const primary = primaryFamily(this.#config.bindAddress, node);
    if (servedFamilies(this.#mode.families).includes(primary) || this.#isStarted(primary)) return true;
    const reason = this.#leftOut.get(primary)?.reason ?? 'it is turned off on this machine';
    this.#fail(new Error(`no support for primary IP family "${primary}": ${reason}`));
    return false;
  }

  #isStarted(family: Family): boolean {
    return this.#families.some((each) => each.family === family && each.runner.isStarted);
  }

  #makeFamily(family: Family, metrics: ProxyMetrics): FamilyRuntime {
    const { config, nodeName, log } = this.#options;
    return new FamilyRuntime({
      family,
      mode: this.#mode,
      settings: this.#settings(config),
      syncPeriodMs: config.syncPeriodMs,
      minSyncPeriodMs: config.minSyncPeriodMs,
      holdPorts: config.junction.holdPorts,
      observer: new FamilyTelemetry({
        family,
        mode: this.#mode.name,
        metrics,
        own: this.#own,
        health: this.#health,
        clock: systemClock,
        wallTime: () => Number(systemTimestamps().wallNs) / 1e6,
      }),
      isHealthy: () => this.#health.isHealthy(),
      onHealthCheckFailure: (failure) => this.#recordHealthCheckFailure(failure),
      onPortTaken: (message) => this.#recorder.record(failedToHoldPort(nodeName, message)),
      onCut: (service, messages) => {
        if (messages.length > 0) this.#recorder.record(serviceTooLarge(nodeName, service, messages));
      },
      onRefused: (service, reason) => this.#recordRefusal(service, reason),
      onForeignChange: (program) => this.#own.foreignChange(family, program),
      onConntrack: ({ seconds, deleted }) => {
        metrics.conntrack_reconciler_sync_duration_seconds.observe({ ip_family: family }, seconds);
        metrics.conntrack_reconciler_deleted_entries_total.add({ ip_family: family }, deleted);
      },
      onReady: () => this.#applyPostponed(family),
      log,
    });
  }

  #settings(config: ValidConfig): Settings {
    return { ...toSettings(config, this.#options.nodeName), apiServers: this.#opened.apiServers };
  }

  #recordRefusal(service: ObjectKey, reason: string): void {
    this.#recorder.record(addressNotServed(this.#options.nodeName, service, reason));
  }

  /** The API server does not check a load balancer's addresses, so their owner learns of it here. */
  #recordProblem({ object, field = '', message }: SourceProblem): void {
    const [kind, key = ''] = object?.split(' ') ?? [];
    if (kind !== 'Service' || !/^(?:status\.loadBalancer\.ingress|spec\.externalIPs)\b/.test(field)) return;
    this.#recordRefusal(key, message);
  }

  /** After the first rules of the first family, which is IPv4 wherever that is served. */
  #applyPostponed(family: Family): void {
    if (!this.#postponed || family !== servedFamilies(this.#mode.families)[0]) return;
    applyPostponed(this.#options, this.#postponed);
    this.#postponed = undefined;
  }

  #recordHealthCheckFailure({ service, port, error }: HealthCheckFailure): void {
    const { nodeName } = this.#options;
    this.#recorder.record(failedToStartServiceHealthcheck(nodeName, service, port, error));
  }

  #startServers(): void {
    const { nodeName, flags, log } = this.#options;
    const servers = makeServers({
      config: () => this.#config,
      flags,
      registry: this.#registry,
      metrics: this.#metrics,
      health: this.#health,
      log,
      startedAt: new Date(),
      onHardFail: (which, error) => {
        const reason = which === 'healthz' ? 'FailedToStartProxierHealthcheck' : 'FailedToStartMetricServer';
        this.#recorder.record(failedToStart(nodeName, reason, error));
        this.#fail(error);
      },
    });
    for (const server of servers) {
      void server.start();
      this.#started('the health and metrics servers', () => server.stop());
    }
  }

  #makeGate(tellsOfNode: boolean): NodeGate {
    const { config, nodeName, log } = this.#options;
    // Manifests need not have a Node; then nothing speaks against this one.
    this.#health.nodeEligible = !tellsOfNode;
    return new NodeGate({
      inner: this.#proxy,
      nodeName,
      clock: systemClock,
      log,
      waits: tellsOfNode,
      needsPodCIDRs: config.detectLocalMode === 'NodeCIDR',
      onNode: (node: Node | undefined) => {
        this.#health.nodeEligible = node?.eligible ?? !tellsOfNode;
      },
      onServiceCidrs: (cidrs) => {
        for (const family of this.#families) family.setServiceCidrs(cidrs);
      },
      mayOpen: (node) => this.#servesPrimary(node),
      onFatal: (error) => this.#fail(error),
    });
  }

  #watchFirewalld(): void {
    if (!this.#config.junction.firewalld) return;
    const listener = new FirewalldListener({
      log: this.#log,
      onReload: (why) => {
        this.#log.info('firewalld has reloaded its rules; writing ours back', { why });
        for (const { runner } of this.#families) runner.requestFull('firewalld has reloaded its rules');
      },
    });
    void listener.start();
    this.#started('the listener for firewalld', () => listener.stop());
  }

  #watchConfig(): void {
    const { configFile, reload, log } = this.#options;
    if (configFile === undefined) return;
    const watch = new ConfigWatch({
      path: configFile,
      current: () => this.#config,
      reload,
      apply: (config) => this.#apply(config),
      onRestartNeeded: () =>
        this.#fail(
          new Error("content of the proxy server's configuration file was updated; restart to take it up"),
        ),
      log,
    });
    watch.start();
    this.#started('the watch of the configuration file', () => watch.stop());
  }

  #apply(config: ValidConfig): void {
    this.#config = config;
    this.#log.setVerbosity(config.logging.verbosity);
    this.#log.setModules(config.logging.vmodule);
    logLocalhostRanges(config, this.#log);
    const settings = this.#settings(config);
    for (const family of this.#families) family.apply(settings, config);
  }
}
