/** Services, EndpointSlices and this node from a Kubernetes API server. */
import type { Cidr } from '../../model/ip.ts';
import type { Clock } from '../../time/clock.ts';
import type { Source, SourceEvents } from '../source.ts';
import type { ApiClient } from './client.ts';
import type { OnDiagnostic } from './diagnostics.ts';
import { Reflector } from './reflector.ts';
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

export class ApiSource implements Source {
  readonly #options: ApiSourceOptions;
  readonly #server: ServerMonitor;
  #stop = new AbortController();
  #running: Promise<unknown> = Promise.resolve();
  /** Kinds whose first list has not come yet. */
  readonly #awaited = new Set<string>();

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
    });
    return () => reflector.run(this.#stop.signal);
  }
}
