/** Services, EndpointSlices and this node from a Kubernetes API server. */
import type { Cidr } from '../../model/ip.ts';
import type { ObjectKey } from '../../model/objects.ts';
import type { Clock } from '../../time/clock.ts';
import type { Source, SourceEvents } from '../source.ts';
import type { ApiClient } from './client.ts';
import type { OnDiagnostic } from './diagnostics.ts';
import { Reflector } from './reflector.ts';
import { isOlder, type Received } from './resourceVersion.ts';
import { Interner } from './interner.ts';
import { endpointSlices, oneNode, type Resource, SERVICE_CIDRS, services } from './resources.ts';
import { ServerMonitor } from './serverMonitor.ts';
import { ResourceStore } from './store.ts';

export interface ApiSourceEvents extends SourceEvents {
  /** Every range that cluster IPs come from, sorted; after the first list and after each change. */
  serviceCIDRs?(cidrs: readonly Cidr[]): void;
}

interface ApiSourceOptions {
  readonly client: ApiClient;
  /** As the API server knows it. */
  readonly nodeName: string;
  readonly clock: Clock;
  /** From 0 to 1; Math.random unless given. */
  readonly random?: (() => number) | undefined;
  readonly onDiagnostic?: OnDiagnostic | undefined;
  /** Ask for ServiceCIDRs too. */
  readonly withServiceCIDRs?: boolean | undefined;
}

const SERVICE = 'Service';

export class ApiSource implements Source {
  readonly #options: ApiSourceOptions;
  readonly #server: ServerMonitor;
  #stop = new AbortController();
  #running: Promise<unknown> = Promise.resolve();
  /** Kinds whose first list has not come yet. */
  readonly #awaited = new Set<string>();
  readonly #reflectors = new Map<string, Received>();

  constructor(options: ApiSourceOptions) {
    this.#options = options;
    const { client, clock, random } = options;
    this.#server = new ServerMonitor({
      clock,
      random: random ?? Math.random,
      probe: (signal) => client.probe(signal),
    });
    // Before the reflectors, so that they ask again on new connections.
    this.#server.add({
      onReturn: () => {
        client.renewConnections();
        client.resetEncoding();
      },
    });
  }

  /** Resolves at once: a server that is not there yet is waited for. */
  async start(events: ApiSourceEvents): Promise<void> {
    const interner = new Interner();
    this.#stop = new AbortController();
    const runs = [
      this.#reflect(events, oneNode(this.#options.nodeName), (name, node) => events.node(name, node)),
      this.#reflect(events, services(interner), (key, service) => events.service(key, service)),
      this.#reflect(events, endpointSlices(interner), (key, slice) => events.endpointSlice(key, slice)),
      ...(this.#options.withServiceCIDRs ? [this.#reflectCidrs(events)] : []),
    ];
    this.#running = Promise.all(runs.map((run) => run()));
  }

  /** What had arrived at a socket is read in the next turns of the event loop, unless work on what came before goes on. */
  async refresh(): Promise<void> {
    for (let turn = 0; turn < 2 || this.#received().some(({ isBehind }) => isBehind); turn++)
      await new Promise((resolve) => setImmediate(resolve));
  }

  receiving(): readonly string[] {
    return this.#received().flatMap(({ name, isListing }) => (isListing ? `${name} are being listed` : []));
  }

  /** Changes come in the order of their versions, so that a newer one of any Service says that this one was received. */
  missing(service: ObjectKey, resourceVersion: string | undefined): string | undefined {
    const services = this.#reflectors.get(SERVICE);
    if (resourceVersion === undefined)
      return services?.has(service) ? undefined : `Service ${service} has not come from the API server`;
    const known = services?.version;
    if (known !== undefined && !isOlder(known, resourceVersion)) return undefined;
    return `Services are known up to resource version ${known ?? 'none'}, and ${service} is asked for at ${resourceVersion}`;
  }

  #received(): readonly Received[] {
    return [...this.#reflectors.values()];
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    this.#server.stop();
    await this.#running;
  }

  #reflectCidrs(events: ApiSourceEvents): () => Promise<void> {
    const ranges = new Map<string, readonly Cidr[]>();
    let isListed = false;
    const emit = (): void => {
      if (isListed) events.serviceCIDRs?.([...new Set([...ranges.values()].flat())].sort());
    };
    return this.#reflect(
      events,
      SERVICE_CIDRS,
      (name, cidrs) => {
        if (cidrs === undefined) ranges.delete(name);
        else ranges.set(name, cidrs);
        emit();
      },
      () => {
        if (isListed) return;
        isListed = true;
        emit();
      },
    );
  }

  #reflect<T>(
    events: SourceEvents,
    resource: Resource<T>,
    emit: (key: string, value: T | undefined) => void,
    onListed?: () => void,
  ): () => Promise<void> {
    const { client, clock, random, onDiagnostic } = this.#options;
    const { kind } = resource;
    this.#awaited.add(kind);
    const reflector = new Reflector({
      client,
      resource,
      store: new ResourceStore({ kind, emit, report: (problem) => events.report(problem) }),
      clock,
      random: random ?? Math.random,
      server: this.#server,
      onDiagnostic: onDiagnostic ?? (() => undefined),
      onListed: () => {
        onListed?.();
        if (this.#awaited.delete(kind) && this.#awaited.size === 0) events.synced();
      },
      onReceived: () => events.received?.(),
    });
    this.#reflectors.set(kind, reflector);
    return () => reflector.run(this.#stop.signal);
  }
}
