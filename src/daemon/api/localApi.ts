/** Questions to the running proxy, at a unix socket. */
import { toV1alpha1, type ValidConfig } from '../../config/effective.ts';
import { changesIn } from '../../explain/events.ts';
import type { SnapshotHeader } from '../../explain/snapshot.ts';
import type { Subject } from '../../explain/subject.ts';
import type { SourceStatus } from '../../explain/status.ts';
import type { WatchEvent } from '../../explain/types.ts';
import type { Log } from '../../log/log.ts';
import type { DualStackProxier } from '../../proxy/dualStackProxier.ts';
import type { Connections } from '../../telemetry/metrics/connections.ts';
import type { HealthState } from '../../telemetry/http/health.ts';
import { systemClock } from '../../time/systemClock.ts';
import { VERSION } from '../../version.ts';
import type { FamilyRuntime } from '../familyRuntime.ts';
import type { Applied } from '../applied.ts';
import type { OpenedSource } from '../source.ts';
import { WatchFeed } from './feed.ts';
import { interfaceTowards } from './arrival.ts';
import { nodeRoutes } from './nodeRoutes.ts';
import { apiPage, RefusedQuestion, type ApiRoute } from './routes.ts';
import { snapshotLines } from './snapshot.ts';
import { SocketServer } from './socketServer.ts';
import { readEphemeralPorts, statusOf } from './status.ts';
import { QuestionTurns } from './turns.ts';

interface LocalApiOptions {
  readonly config: () => ValidConfig;
  readonly nodeName: string;
  readonly opened: OpenedSource;
  readonly applied: Applied;
  readonly health: HealthState;
  readonly families: () => readonly FamilyRuntime[];
  readonly proxier: () => DualStackProxier | undefined;
  /** What the mode has counted, where it counts. */
  readonly connections: Connections | undefined;
  readonly log: Log;
}

/** Each holds a queue. */
const MOST_WATCHES = 64;
export class LocalApi {
  readonly #options: LocalApiOptions;
  readonly #feed = new WatchFeed({
    clock: systemClock,
    wallTime: Date.now,
    turn: () => this.#turns.begin(),
  });
  readonly #turns: QuestionTurns;
  readonly #startedAt = Date.now();
  #server: SocketServer | undefined;

  constructor(options: LocalApiOptions) {
    this.#options = options;
    this.#turns = new QuestionTurns({
      clock: systemClock,
      isSyncing: () => options.families().some(({ isSyncing }) => isSyncing),
    });
  }

  /** For who watches. */
  emit(event: WatchEvent): void {
    this.#feed.emit(event);
  }

  start(): void {
    const { log } = this.#options;
    const { apiSocket: path, apiSocketMode } = this.#options.config().junction;
    if (path === '') return;
    const page = apiPage(this.#routes(), (error) => log.error('A question failed', { err: error }));
    this.#server = new SocketServer({
      path,
      mode: Number.parseInt(apiSocketMode, 8),
      page,
      log,
      clock: systemClock,
    });
    void this.#server.start();
  }

  async stop(): Promise<void> {
    this.#feed.close();
    await this.#server?.stop();
  }

  #routes(): readonly ApiRoute[] {
    const { connections } = this.#options;
    return nodeRoutes({
      status: () => this.#status(),
      applied: {
        clock: systemClock,
        wait: (wait) => this.#options.applied.wait(wait),
        missing: (...asked) => this.#options.opened.source.missing?.(...asked),
      },
      subject: () => this.#subject(),
      countConnections: connections && (() => connections.refresh()),
      recentEvents: () => this.#feed.recent,
      watch: (signal) => this.#watch(signal),
      snapshot: () => this.#snapshot(),
      turns: this.#turns,
    });
  }

  #status() {
    const { config, nodeName, opened, health, families, proxier } = this.#options;
    const { mode, junction } = config();
    const lastEventAt = proxier()?.lastEventAt;
    const source = (): SourceStatus => ({
      ...opened.status(),
      ...(lastEventAt !== undefined && { lastEventAt }),
    });
    return statusOf({
      nodeName,
      mode,
      layout: junction.iptablesLayout,
      startedAt: this.#startedAt,
      source,
      families: families(),
      health,
      sysctlRoot: junction.sysctlRoot,
    });
  }

  /** As it is now. */
  #subject(): Subject {
    const { config, nodeName, opened, proxier, connections } = this.#options;
    const { mode, junction, detectLocalMode } = config();
    const ephemeralPorts = readEphemeralPorts(junction.sysctlRoot);
    const families = this.#served().map(({ subject }) => subject);
    return {
      nodeName,
      mode,
      layout: junction.iptablesLayout,
      families,
      detectLocal: detectLocalMode,
      ...(ephemeralPorts && { ephemeralPorts }),
      ...(mode === 'nftables' && { serviceCidrs: proxier()?.knownServiceCidrs ?? [] }),
      ...(opened.locate && { locate: opened.locate }),
      unserved: opened.unserved,
      now: () => Date.now(),
      interfaceFrom: (source) => interfaceTowards(source).catch(() => undefined),
      changesOf: (service) => changesIn(this.#feed.recent, service),
      connectionsOf: (family, servicePort, endpoint) =>
        connections?.ofEndpoint(family, servicePort, endpoint),
      pause: () => this.#turns.pause(),
    };
  }

  #served(): readonly FamilyRuntime[] {
    return this.#options.families().filter(({ runner }) => runner.isStarted);
  }

  #watch(signal: AbortSignal): AsyncIterable<string> {
    if (this.#feed.clients >= MOST_WATCHES)
      throw new RefusedQuestion(503, 'busy', `${MOST_WATCHES} clients watch already`);
    return this.#feed.subscribe(signal);
  }

  #snapshot(): AsyncIterable<string> {
    const { proxier } = this.#options;
    const subject = this.#subject();
    return snapshotLines({
      header: this.#header(subject),
      node: proxier()?.currentNode,
      families: subject.families,
      pause: () => this.#turns.pause(),
    });
  }

  #header({ mode, nodeName, families }: Subject): SnapshotHeader {
    const { config, opened, proxier } = this.#options;
    return {
      kind: 'header',
      format: 1,
      version: VERSION,
      node: nodeName,
      mode,
      takenAt: Date.now(),
      config: toV1alpha1(config()),
      apiServers: opened.apiServers,
      serviceCidrs: proxier()?.knownServiceCidrs ?? [],
      families: families.map(({ family, host, refused }) => ({
        family,
        addresses: host.addresses,
        refused: [...refused].map(([servicePort, error]) => ({ servicePort, error })),
      })),
    };
  }
}
