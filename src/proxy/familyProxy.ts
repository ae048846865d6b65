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
import { LocalEndpoints } from '../model/localEndpoints.ts';
import { ServiceTracker } from '../model/serviceTracker.ts';
import { Planner } from '../plan/planner.ts';
import type { Plan, PlanChange } from '../plan/types.ts';
import { nodeView, type ViewSettings } from '../plan/view.ts';
import { atOnce, Breath, unhurried } from '../sync/breath.ts';
import { systemClock } from '../sync/systemClock.ts';
import { type FamilyObserver, NO_OBSERVER } from './observer.ts';

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
  readonly observer?: FamilyObserver;
  /** Wall time in milliseconds; how long changes took is counted for those from after it. */
  readonly startedAt?: number;
  readonly breath?: Breath;
}

type Replanned = Pick<SyncOutcome, 'changes'>;

export interface SyncOutcome {
  readonly report: SyncReport;
  readonly changes: readonly PlanChange[];
  /** When what is in the kernel now was asked for, in milliseconds of wall time. */
  readonly triggers: readonly number[];
}

export class FamilyProxy {
  readonly family: Family;
  #settings: ViewSettings;
  readonly #backend: Backend;
  readonly #services: ServiceTracker;
  readonly #endpoints: EndpointTracker;
  readonly #planner: Planner;
  readonly #localEndpoints: LocalEndpoints;
  readonly #observer: FamilyObserver;
  readonly #breath: Breath;
  #node: Node | undefined;
  #synced = false;
  /** Planned, but not known to be in the kernel. */
  readonly #unwritten = new Set<ServicePortId>();
  /** What those were when the kernel was last written, and what they are. */
  readonly #unreported = new Map<ServicePortId, PlanChange>();

  constructor(options: FamilyProxyOptions) {
    const { family, settings, backend, observer, startedAt } = options;
    this.family = family;
    this.#settings = settings;
    this.#backend = backend;
    this.#observer = observer ?? NO_OBSERVER;
    this.#breath = options.breath ?? new Breath(systemClock);
    this.#services = new ServiceTracker(family);
    this.#endpoints = new EndpointTracker(family, settings.nodeName, startedAt);
    const inputs = {
      portsOf: (key: ObjectKey) => this.#services.portsOf(key),
      endpointsOf: (key: ObjectKey) => this.#endpoints.endpointsOf(key),
    };
    this.#planner = new Planner(family, nodeView(settings, undefined, family), inputs);
    this.#localEndpoints = new LocalEndpoints(inputs);
  }

  get plan(): Plan {
    return this.#planner;
  }

  /** Addresses that a service port asked for and somebody else has. */
  denied(id: ServicePortId): ReturnType<Planner['denied']> {
    return this.#planner.denied(id);
  }

  /** Each of these answers whether a sync is needed. */
  onService(key: ObjectKey, service: Service | undefined): boolean {
    const isPending = this.#services.update(key, service);
    this.#observer.serviceEvent(this.#services.pendingCount);
    return isPending;
  }

  onEndpointSlice(namespace: string, name: string, slice: EndpointSlice | undefined): boolean {
    const changed = this.#endpoints.update(namespace, name, slice);
    if (changed) this.#observer.endpointEvent();
    return changed;
  }

  onNode(node: Node | undefined): boolean {
    this.#node = node;
    return true;
  }

  /** The configuration changed; the node's name cannot. */
  onSettings(settings: ViewSettings): void {
    this.#settings = settings;
  }

  /** Services with a health-check node port, and how many ready addresses each has on this node. */
  get localEndpoints(): Pick<LocalEndpoints, 'ports' | 'counts'> {
    return this.#localEndpoints;
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
  replan(): Replanned {
    return atOnce(this.#replanning());
  }

  /**
   * Service by service. What is told between two of them is for the next sync, or for this one where its service's
   * turn has not come.
   */
  *#replanning(): Generator<void, Replanned> {
    const services = this.#services.apply();
    const seenAnew = new Set(this.#planner.adoptView(nodeView(this.#settings, this.#node, this.family)));
    const changes: PlanChange[] = [];
    for (const key of new Set([...seenAnew, ...services.keys(), ...this.#endpoints.pendingServices()])) {
      const endpoints = this.#endpoints.apply([key]);
      if (endpoints.size > 0 || services.has(key) || seenAnew.has(key)) {
        for (const change of this.#planner.update([key])) {
          changes.push(change);
          this.#unwritten.add(change.id);
        }
        this.#localEndpoints.update([key]);
      }
      yield;
    }
    this.#observer.planned(this.#planner, changes);
    return { changes };
  }

  /** Brings the kernel up to date; `undefined` while the first picture is incomplete. */
  async sync(): Promise<SyncOutcome | undefined> {
    if (!this.#synced) return undefined;
    const triggers = this.#endpoints.takeTriggers();
    const { changes } = await unhurried(this.#replanning(), this.#breath);
    const writing = [...this.#unwritten];
    for (const change of changes) {
      const previous = (this.#unreported.get(change.id) ?? change).previous;
      this.#unreported.set(change.id, { ...change, previous });
    }
    const report = await this.#backend.sync(this.#planner, writing);
    for (const id of writing) this.#unwritten.delete(id);
    const reported = [...this.#unreported.values()];
    this.#unreported.clear();
    return { report, changes: reported, triggers };
  }
}
