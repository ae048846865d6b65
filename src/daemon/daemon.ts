/** The running proxy: starts its parts in order, and ends them in reverse. */
import { toV1alpha1, type ValidConfig } from '../config/effective.ts';
import { gateStates } from '../config/featureGates.ts';
import { type Settings, toSettings } from '../config/settings.ts';
import type { WatchEvent } from '../explain/types.ts';
import type { Log } from '../log/log.ts';
import type { Family } from '../model/ip.ts';
import type { Node } from '../model/objects.ts';
import { servedFamilies } from '../modes/staleObjects.ts';
import { NFACCT } from '../modes/iptables/rules/names.ts';
import type { Mode } from '../modes/mode.ts';
import { readNfacct } from '../netlink/nfacct.ts';
import { DualStackProxier } from '../proxy/dualStackProxier.ts';
import type { SourceProblem } from '../sources/source.ts';
import { FirewalldListener } from '../system/firewalld.ts';
import { addressNotServed, failedToStart, starting } from '../telemetry/events/event.ts';
import { END_LIMITS, END_LIMITS_OF_FAILURE, EventRecorder } from '../telemetry/events/recorder.ts';
import { HealthServer, HealthState } from '../telemetry/http/health.ts';
import { type MetricsPageOptions, MetricsServer } from '../telemetry/http/metricsServer.ts';
import type { BindOptions, BoundServer } from '../telemetry/http/server.ts';
import { systemTimestamps } from '../telemetry/http/timestamp.ts';
import { addBuildInfo, addFeatures } from '../telemetry/metrics/componentMetrics.ts';
import { Connections } from '../telemetry/metrics/connections.ts';
import type { Registry } from '../telemetry/metrics/instruments.ts';
import { faultMetrics, type JunctionMetrics } from '../telemetry/metrics/junctionMetrics.ts';
import { processMetrics, RuntimeMetrics } from '../telemetry/metrics/processMetrics.ts';
import { type ProxyMetrics, registerProxyMetrics } from '../telemetry/metrics/proxyMetrics.ts';
import { systemClock } from '../time/systemClock.ts';
import { BUILD, KUBERNETES_VERSION, VERSION } from '../version.ts';
import { LocalApi } from './api/localApi.ts';
import { Applied } from './applied.ts';
import { ConfigWatch } from './configWatch.ts';
import { FamilyRuntime } from './familyRuntime.ts';
import { LeftOutFamilies, primaryFamily } from './leftOutFamilies.ts';
import { MemoryReturn } from './memory.ts';
import { applyPostponed, logLocalhostRanges, type Postponed } from './preparation.ts';
import type { OpenedSource } from './source.ts';
import type { Supervision } from './supervision.ts';

export interface DaemonOptions {
  readonly config: ValidConfig;
  readonly nodeName: string;
  readonly configFile: string | undefined;
  /** Reads flags and file again; throws with what is wrong. */
  readonly reload: () => ValidConfig;
  readonly flags: MetricsPageOptions['flags'];
  readonly initOnly: boolean;
  readonly log: Log;
  /** Its signal ends the daemon. Knows what the daemon does, so that what hangs has a name. */
  readonly supervision: Supervision;
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
  readonly #parts: DaemonParts;
  readonly #log: Log;
  #config: ValidConfig;
  readonly #runtime = new RuntimeMetrics();
  readonly #memory = new MemoryReturn(systemClock);
  readonly #metrics: ProxyMetrics;
  readonly #connections: Connections | undefined;
  readonly #health: HealthState;
  readonly #recorder: EventRecorder;
  readonly #families: readonly FamilyRuntime[];
  readonly #leftOut: LeftOutFamilies;
  readonly #api: LocalApi;
  readonly #applied: Applied;
  /** What is being opened, and will not be waited for again. */
  readonly #opening = new Set<string>();
  #proxier: DualStackProxier | undefined;
  #lastChangeId = 0;
  /** What has been started, to be stopped in reverse. */
  readonly #running: { readonly name: string; readonly stop: () => void | Promise<void> }[] = [];
  #hasFailed = false;
  #end: (exitCode: number) => void = () => {};
  readonly #ended = new Promise<number>((resolve) => {
    this.#end = resolve;
  });

  constructor(options: DaemonOptions, parts: DaemonParts) {
    const { config, nodeName, log } = options;
    const { own, mode } = parts;
    this.#options = options;
    this.#parts = parts;
    this.#config = config;
    this.#log = log;
    const { resources } = parts.opened;
    this.#health = new HealthState({
      syncPeriodMs: config.syncPeriodMs,
      now: systemTimestamps,
      resources,
    });
    this.#recorder = new EventRecorder({ nodeName, clock: systemClock, log });
    const { connections } = mode;
    if (connections) this.#connections = new Connections({ read: connections, clock: systemClock });
    this.#metrics = this.#makeMetrics();
    this.#leftOut = new LeftOutFamilies({
      families: mode.families,
      ask: (family) => mode.probe(family),
      onServed: (served) => this.#families.find(({ family }) => family === served)?.start(),
      onAnswer: (family, { state, reason }) =>
        this.#health.leftOut(family, { reason, isAnswered: state === 'absent' }),
      log,
    });
    const { source } = parts.opened;
    this.#applied = new Applied({
      refresh: async () => source.refresh?.(),
      receiving: () => [...(source.receiving?.() ?? []), ...(this.#proxier?.waitsFor ?? [])],
      work: () => [
        { mark: () => () => [...this.#opening] },
        ...this.#families.filter(({ family }) => !this.#leftOut.get(family)).map(({ runner }) => runner),
      ],
    });
    this.#api = new LocalApi({
      applied: this.#applied,
      config: () => this.#config,
      nodeName,
      opened: parts.opened,
      health: this.#health,
      families: () => this.#families,
      proxier: () => this.#proxier,
      connections: this.#connections,
      log,
    });
    const shared = {
      metrics: this.#metrics,
      own,
      health: this.#health,
      recorder: this.#recorder,
      memory: this.#memory,
      log,
    };
    const settings = this.#settings(config);
    const hooks = {
      onReady: (family: Family): void => this.#onReady(family),
      emit: (event: WatchEvent): void => this.#api.emit(event),
      nextChangeId: () => ++this.#lastChangeId,
      onApplied: () => this.#applied.changed(),
    };
    this.#families = mode.families
      .filter(({ isStartable }) => isStartable)
      .map(({ family }) => new FamilyRuntime(family, { mode, config, settings, ...shared, ...hooks }));
  }

  async run(): Promise<number> {
    const { nodeName, supervision } = this.#options;
    const { signal } = supervision;
    const { source, sendEvent } = this.#parts.opened;
    this.#startServers();
    signal.addEventListener('abort', () => this.#end(0), { once: true });
    if (signal.aborted) this.#end(0);
    const proxier = this.#makeProxier();
    this.#proxier = proxier;
    this.#api.start();
    this.#started('the socket for questions', () => this.#api.stop());
    this.#started('the wait for the Node', () => proxier.close());
    this.#started('the source of objects', () => source.stop());
    supervision.doing('reading objects for the first time');
    // A signal does not wait for a thousand manifests to be read.
    await Promise.race([source.start(proxier), this.#ended]);
    // Also at an end that comes so early: the event says why.
    if (sendEvent) this.#recorder.start(sendEvent);
    this.#started('the recorder of events', () =>
      this.#recorder.stop(this.#hasFailed ? END_LIMITS_OF_FAILURE : END_LIMITS),
    );
    if (this.#hasFailed || signal.aborted) return this.#ended;
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
    this.#memory.close();
  }

  #started(name: string, stop: () => void | Promise<void>): void {
    this.#running.push({ name, stop });
  }

  #fail(error: Error): void {
    this.#log.error(error.message);
    this.#hasFailed = true;
    this.#end(1);
  }

  #makeMetrics(): ProxyMetrics {
    const { registry, own, mode } = this.#parts;
    for (const collector of [processMetrics, this.#runtime, faultMetrics]) registry.add(collector);
    own.table.junction_mode_info.set({ mode: mode.name }, 1);
    addBuildInfo(registry, { version: VERSION, kubernetesVersion: KUBERNETES_VERSION, ...BUILD });
    addFeatures(registry, gateStates(this.#config.featureGates));
    if (this.#connections) registry.add(this.#connections);
    return registerProxyMetrics(registry, mode.name, {
      invalidDropped: () => readNfacct(NFACCT.invalidDropped)?.packets,
      localhostNodePorts: () => readNfacct(NFACCT.localhostNodePorts)?.packets,
    });
  }

  #makeProxier(): DualStackProxier {
    const { config, nodeName, log } = this.#options;
    const { isNodeExpected } = this.#parts.opened;
    // Manifests need not have a Node; then nothing speaks against this one.
    this.#health.nodeEligible = !isNodeExpected;
    const needed = config.detectLocalMode === 'NodeCIDR' ? 'podCIDRs' : 'addresses';
    return new DualStackProxier({
      nodeName,
      runners: this.#families.map(({ runner }) => runner),
      log,
      waitsFor: isNodeExpected ? needed : undefined,
      onNode: (node) => {
        this.#health.nodeEligible = node?.eligible ?? !isNodeExpected;
      },
      onServiceCidrs: (cidrs) => {
        for (const family of this.#families) family.setServiceCidrs(cidrs);
      },
      maySync: (node) => this.#servesPrimary(node),
      onFatal: (error) => this.#fail(error),
      onProblem: (problem) => this.#recordProblem(problem),
      onReceived: () => this.#applied.changed(),
    });
  }

  /** kube-proxy ends too where the node's primary family cannot be served. */
  #servesPrimary(node: Node | undefined): boolean {
    const primary = primaryFamily(this.#config.bindAddress, node);
    const isStarted = this.#families.some(({ family, runner }) => family === primary && runner.isStarted);
    if (isStarted || servedFamilies(this.#parts.mode.families).includes(primary)) return true;
    const reason = this.#leftOut.get(primary)?.reason ?? 'it is turned off on this machine';
    this.#fail(new Error(`no support for primary IP family "${primary}": ${reason}`));
    return false;
  }

  #settings(config: ValidConfig): Settings {
    return { ...toSettings(config, this.#options.nodeName), apiServers: this.#parts.opened.apiServers };
  }

  /** The API server does not check a load balancer's addresses, so their owner learns of it here. */
  #recordProblem({ object, field = '', message }: SourceProblem): void {
    const [kind, key = ''] = object?.split(' ') ?? [];
    if (kind !== 'Service' || !/^(?:status\.loadBalancer\.ingress|spec\.externalIPs)\b/.test(field)) return;
    this.#recorder.record(addressNotServed(this.#options.nodeName, key, message));
  }

  /** After the first rules of the first family, which is IPv4 wherever that is served. */
  #onReady(family: Family): void {
    const { mode, postponed } = this.#parts;
    if (family === servedFamilies(mode.families)[0]) applyPostponed(this.#options, postponed);
  }

  /** Health, and metrics with everything else for operators. None for an empty address. */
  #startServers(): void {
    const { flags, log } = this.#options;
    const { healthzBindAddress, metricsBindAddress, mode, enableProfiling } = this.#config;
    if (healthzBindAddress !== '')
      this.#startServer(
        'health',
        new HealthServer({
          ...this.#bind(healthzBindAddress, 'FailedToStartProxierHealthcheck'),
          state: this.#health,
          now: systemTimestamps,
          counter: (probe, code) => this.#metrics[`proxy_${probe}_total`].add({ code }),
        }),
      );
    const startedAt = new Date();
    if (metricsBindAddress !== '')
      this.#startServer(
        'metrics',
        new MetricsServer({
          ...this.#bind(metricsBindAddress, 'FailedToStartMetricServer'),
          mode,
          metrics: () => this.#parts.registry.print(),
          configz: () => toV1alpha1(this.#config),
          flags,
          status: () => ({ startedAt, now: new Date(), version: VERSION }),
          ...(enableProfiling && { debug: { setVerbosity: (level: number) => log.setVerbosity(level) } }),
        }),
      );
  }

  /** With bindAddressHardFail: an address that cannot be had ends the process. */
  #bind(address: string, reason: Parameters<typeof failedToStart>[1]): BindOptions {
    const { nodeName, log } = this.#options;
    const onHardFail = (error: Error): void => {
      this.#recorder.record(failedToStart(nodeName, reason, error));
      this.#fail(error);
    };
    return { address, log, clock: systemClock, ...(this.#config.bindAddressHardFail && { onHardFail }) };
  }

  #startServer(name: string, server: BoundServer): void {
    this.#open(`the ${name} server is being started`, server.start());
    this.#started('the health and metrics servers', () => server.stop());
  }

  /** Beside everything else, and once: what cannot be opened is tried again without anybody waiting for it. */
  #open(what: string, first: Promise<void>): void {
    this.#opening.add(what);
    void first.then(() => {
      this.#opening.delete(what);
      this.#applied.changed();
    });
  }

  #watchFirewalld(): void {
    if (!this.#config.junction.firewalld) return;
    const listener = new FirewalldListener({
      log: this.#log,
      onReload: (why) => {
        this.#log.info('firewalld has reloaded its rules; writing ours back', { why });
        for (const { runner } of this.#families) runner.requestFull('firewalld has reloaded its rules', true);
      },
    });
    this.#open('firewalld is being looked for', listener.start());
    this.#started('the listener for firewalld', () => listener.stop());
  }

  #watchConfig(): void {
    const { configFile: path, reload, log } = this.#options;
    if (path === undefined) return;
    const watch = new ConfigWatch({
      path,
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
