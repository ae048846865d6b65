/**
 * One address family's proxy: events in, plan in the middle, kernel out.
 *
 * Nothing is written before the first full picture of every kind has arrived: half a picture would cut off every
 * service that is not in it yet.
 */
import type { SyncReport } from '../backends/iptables/backend.ts';
import { EndpointTracker } from '../model/endpointTracker.ts';
import type { Family } from '../model/ip.ts';
import type { EndpointSlice, Node, ObjectKey, Service } from '../model/objects.ts';
import type { ServicePortId } from '../model/servicePort.ts';
import { ServiceTracker } from '../model/serviceTracker.ts';
import { detectStaleConnections, type StaleConnections } from '../model/stale.ts';
import { Planner } from '../plan/planner.ts';
import type { Plan, PlanChange } from '../plan/types.ts';
import { nodeView, type ViewSettings } from '../plan/view.ts';

/** Writes a plan into the kernel. */
export interface Backend {
  sync(plan: Plan, dirty: Iterable<ServicePortId>): Promise<SyncReport>;
  /** The next sync reads the kernel and mends what differs. */
  requestFull(): void;
}

export interface FamilyProxyOptions {
  readonly family: Family;
  readonly settings: ViewSettings;
  readonly backend: Backend;
}

export interface SyncOutcome {
  readonly report: SyncReport;
  readonly changes: readonly PlanChange[];
  readonly stale: StaleConnections;
  readonly planMs: number;
}

export class FamilyProxy {
  readonly family: Family;
  readonly #settings: ViewSettings;
  readonly #backend: Backend;
  readonly #services: ServiceTracker;
  readonly #endpoints: EndpointTracker;
  readonly #planner: Planner;
  #node: Node | undefined;
  #synced = false;
  /** Planned, but not known to be in the kernel. */
  readonly #unwritten = new Set<ServicePortId>();

  constructor({ family, settings, backend }: FamilyProxyOptions) {
    this.family = family;
    this.#settings = settings;
    this.#backend = backend;
    this.#services = new ServiceTracker(family);
    this.#endpoints = new EndpointTracker(family, settings.nodeName);
    this.#planner = new Planner(family, nodeView(settings, undefined, family), {
      portsOf: (key) => this.#services.portsOf(key),
      endpointsOf: (key) => this.#endpoints.endpointsOf(key),
    });
  }

  get plan(): Plan {
    return this.#planner;
  }

  /** Each of these answers whether a sync is needed. */
  onService(key: ObjectKey, service: Service | undefined): boolean {
    return this.#services.update(key, service);
  }

  onEndpointSlice(namespace: string, name: string, slice: EndpointSlice | undefined): boolean {
    return this.#endpoints.update(namespace, name, slice);
  }

  onNode(node: Node | undefined): boolean {
    this.#node = node;
    return true;
  }

  /** The first full picture is here. */
  onSynced(): void {
    this.#synced = true;
  }

  get isSynced(): boolean {
    return this.#synced;
  }

  requestFull(): void {
    this.#backend.requestFull();
  }

  /** Applies what has changed to the plan alone. */
  replan(): Pick<SyncOutcome, 'changes' | 'stale'> {
    const services = this.#services.apply();
    const endpoints = this.#endpoints.apply();
    const changes = [
      ...this.#planner.setView(nodeView(this.#settings, this.#node, this.family)),
      ...this.#planner.update(new Set([...services.keys(), ...endpoints.keys()])),
    ];
    for (const { id } of changes) this.#unwritten.add(id);
    return { changes, stale: detectStaleConnections(services, endpoints) };
  }

  /** Brings the kernel up to date; `undefined` while the first picture is incomplete. */
  async sync(): Promise<SyncOutcome | undefined> {
    if (!this.#synced) return undefined;
    const started = performance.now();
    const { changes, stale } = this.replan();
    const planMs = performance.now() - started;
    const writing = [...this.#unwritten];
    const report = await this.#backend.sync(this.#planner, writing);
    for (const id of writing) this.#unwritten.delete(id);
    return { report, changes, stale, planMs };
  }
}
