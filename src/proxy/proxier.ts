/**
 * One address family's proxier: events in, plan in the middle, kernel out.
 *
 * Nothing is written before the first full snapshot of every kind has arrived: half of one would cut off every service
 * that is not in it yet.
 */
import { EndpointTracker, type MergeLimits } from '../model/endpointTracker.ts';
import { describeNode, describeService, describeSlice } from '../model/describeChange.ts';
import type { Family } from '../model/ip.ts';
import type { EndpointSlice, Node, ObjectKey, Service } from '../model/objects.ts';
import { type ServicePort, type ServicePortId, ServiceTracker } from '../model/serviceTracker.ts';
import { LocalEndpoints } from '../model/localEndpoints.ts';
import { type Capacity, costOf, UNBOUNDED } from '../plan/capacity.ts';
import { Planner } from '../plan/planner.ts';
import { ApiServerEndpoints, nodeView, type ViewSettings } from '../plan/view.ts';
import type { Plan, PlanChange } from '../plan/types.ts';
import { runSliced, runToEnd, TimeSlice } from '../time/timeSlice.ts';
import { systemClock } from '../time/systemClock.ts';
import { Turns, Unwritten } from './writeOrder.ts';
import type { PendingChanges, ServiceInputs } from './pendingChanges.ts';
import { Causes, type SyncAttempt, type SyncReport } from './report.ts';
import type { SideWork } from './openWork.ts';
import type { FamilyTelemetry } from './telemetry.ts';

/** One address family of a mode: writes a plan into the kernel. */
export interface KernelWriter {
  /** `isChangeWaiting`: a mode that verifies may stop for it; see `SyncReport.isUnfinished`. */
  sync(plan: Plan, dirty: Iterable<ServicePortId>, isChangeWaiting?: () => boolean): Promise<SyncReport>;
  /** The next sync reads the kernel and repairs what differs. */
  requestFull(): void;
  /** What the last sync set out to do, also if it failed; unset: a full sync. */
  readonly attempt?: SyncAttempt | undefined;
  /** Endpoints that are gone are kept until their connections have ended. */
  readonly isDraining?: boolean;
  /** What the last sync began and did not wait for. */
  readonly sideWork?: readonly SideWork[];
  /** How many endpoints and frontends a sync is to write before others have their turn; unset: all that changed. */
  readonly writesPerSync?: number | undefined;
}

interface ProxierOptions {
  readonly family: Family;
  readonly settings: ViewSettings;
  readonly writer: KernelWriter;
  readonly telemetry?: Pick<FamilyTelemetry, 'serviceEvent' | 'endpointEvent' | 'planned'>;
  /** Wall time in milliseconds; how long changes took is counted for those from after it. */
  readonly startedAt?: number;
  readonly timeSlice?: TimeSlice;
  /** What one Service may cost; without it, whatever it wants. */
  readonly capacity?: Capacity;
  /** Notes changes for questions. */
  readonly pendingChanges?: PendingChanges | undefined;
}

type Turn = 'first' | 'next';
type Replanned = Pick<SyncOutcome, 'changes' | 'triggers'>;

/** Services and slices as they are planned. */
interface ProxierInputs {
  services(): Iterable<ObjectKey>;
  portsOf(service: ObjectKey): readonly ServicePort[];
  slicesOf(service: ObjectKey): readonly EndpointSlice[];
}

export interface SyncOutcome {
  readonly report: SyncReport;
  readonly changes: readonly PlanChange[];
  /** When what is in the kernel now was asked for, in milliseconds of wall time. */
  readonly triggers: readonly number[];
  /** Which objects changed, as far as a log line can say. */
  readonly causes?: Causes;
  /** Others wait for their turn, which is now. */
  readonly isPartial?: boolean;
  /** How long the planning took, in milliseconds. */
  readonly planMs: number;
  /** When the oldest change that was written was seen, in milliseconds of wall time. */
  readonly seenAt?: number | undefined;
}

export class Proxier {
  readonly family: Family;
  readonly plan: Planner;
  /** Services with a health-check node port, and how many ready addresses each has on this node. */
  readonly localEndpoints: LocalEndpoints;
  readonly writer: KernelWriter;
  #settings: ViewSettings;
  readonly #services: ServiceTracker;
  readonly #endpoints: EndpointTracker;
  readonly #telemetry: ProxierOptions['telemetry'];
  readonly #timeSlice: TimeSlice;
  readonly #capacity: Capacity;
  readonly #pendingChanges: PendingChanges | undefined;
  readonly #turns = new Turns({
    costOf: (service) => this.#costOf(service),
    isServed: (service) =>
      this.#services.portsOf(service).length > 0 && this.#services.pendingPortsOf(service)?.length !== 0,
  });
  /** Services whose plan depends on what changed about the node. */
  readonly #viewChanged = new Set<ObjectKey>();
  /** The kernel has all services of the first snapshot. */
  #hasWritten = false;
  readonly #apiServers = new ApiServerEndpoints();
  #node: Node | undefined;
  #isSynced = false;
  readonly #unwritten = new Unwritten();
  /** When what is partly written was asked for. */
  readonly #heldTriggers: number[] = [];
  /** Of what is planned and not written yet. */
  readonly #causes = new Causes();
  /** Of a view of the node that is not planned with yet. */
  readonly #viewCauses = new Causes();
  /** Of the view that is planned with. */
  #viewCause = 'the node changed';

  constructor(options: ProxierOptions) {
    const { family, settings, writer, telemetry, startedAt } = options;
    this.family = family;
    this.#settings = settings;
    this.writer = writer;
    this.#telemetry = telemetry;
    this.#timeSlice = options.timeSlice ?? new TimeSlice(systemClock);
    this.#services = new ServiceTracker(family);
    const { pendingChanges } = options;
    this.#pendingChanges = pendingChanges;
    const onPending = (service: ObjectKey): void => this.#seen(service);
    this.#endpoints = new EndpointTracker(family, settings.nodeName, startedAt, onPending);
    const inputs = {
      portsOf: (key: ObjectKey) => this.#services.portsOf(key),
      endpointsOf: (key: ObjectKey, limits?: MergeLimits) => this.#endpoints.endpointsOf(key, limits),
      endpointCountOf: (key: ObjectKey) => this.#endpoints.endpointCountOf(key),
    };
    this.#capacity = options.capacity ?? UNBOUNDED;
    this.plan = new Planner(family, nodeView(settings, undefined, family), inputs, this.#capacity);
    this.localEndpoints = new LocalEndpoints(inputs);
  }

  /** Each of these returns whether a sync is needed. */
  onService(key: ObjectKey, service: Service | undefined): boolean {
    const isPending = this.#services.update(key, service);
    if (this.#services.pendingPortsOf(key)) this.#seen(key);
    else this.#pendingChanges?.unchanged(key);
    this.#telemetry?.serviceEvent(this.#services.pendingCount);
    return isPending;
  }

  /** Of the first snapshot nothing is noted: all of it is new. */
  #seen(service: ObjectKey): void {
    if (this.#hasWritten) this.#pendingChanges?.seen(service);
  }

  onEndpointSlice(key: ObjectKey, slice: EndpointSlice | undefined): boolean {
    this.#apiServers.update(key, slice);
    const changed = this.#endpoints.update(key, slice);
    if (changed) this.#telemetry?.endpointEvent();
    return changed;
  }

  onNode(node: Node | undefined): boolean {
    this.#viewCauses.note(describeNode(this.#node, node));
    this.#node = node;
    return true;
  }

  /** The configuration changed; the node's name cannot. */
  onSettings(settings: ViewSettings): void {
    this.#viewCauses.note('the configuration changed');
    this.#settings = settings;
  }

  /** The first full snapshot is here. */
  onSynced(): void {
    this.#isSynced = true;
  }

  get isSynced(): boolean {
    return this.#isSynced;
  }

  /** What the plan was made from. */
  get inputs(): ProxierInputs {
    return {
      services: () => this.#services.keys(),
      portsOf: (key) => this.#services.portsOf(key),
      slicesOf: (key) => this.#endpoints.slicesOf(key),
    };
  }

  /** All that is planned has been written. */
  get isWritten(): boolean {
    return this.#hasWritten && this.#unwritten.size === 0;
  }

  /** Of this family. */
  get serviceCount(): number {
    return this.#services.size;
  }

  /** Applies what has changed to the plan alone. */
  replan(): Replanned {
    return runToEnd(this.#replanning());
  }

  #costOf(service: ObjectKey): number {
    const now = this.#services.portsOf(service);
    const soon = this.#services.pendingPortsOf(service) ?? now;
    const endpoints = this.#endpoints.endpointCountOf(service) + this.#endpoints.pendingCountOf(service);
    return Math.max(costOf(now, endpoints, this.#capacity), costOf(soon, endpoints, this.#capacity));
  }

  #pending(): ReadonlySet<ObjectKey> {
    return new Set([
      ...this.#viewChanged,
      ...this.#services.pendingServices(),
      ...this.#endpoints.pendingServices(),
    ]);
  }

  /**
   * Service by service. What arrives between two of them is for the next sync, or for this one where its service's
   * turn has not come.
   */
  *#replanning(turn?: Turn): Generator<void, Replanned> {
    const view = nodeView(this.#settings, this.#node, this.family, this.#apiServers.all);
    for (const key of this.plan.changeView(view)) this.#viewChanged.add(key);
    const causes = this.#causes;
    const viewCauses = this.#viewCauses.take();
    causes.join(viewCauses);
    this.#viewCause = viewCauses.print() || this.#viewCause;
    const pending = this.#pending();
    const taken = turn ? this.#turns.next(pending, turn === 'first') : [...pending];
    const triggers = this.#endpoints.takeTriggers(turn && taken);
    const services = this.#services.apply(taken);
    for (const [key, change] of services) causes.add(() => describeService(key, change));
    const changes: PlanChange[] = [];
    const onSlice = (previous: EndpointSlice | undefined, current: EndpointSlice | undefined): void =>
      causes.add(() => describeSlice(previous, current));
    for (const key of taken) {
      const slices = this.#hasWritten && this.#pendingChanges ? this.#endpoints.slicesOf(key) : undefined;
      const areEndpointsChanged = this.#endpoints.apply(key, onSlice);
      const isViewChanged = this.#viewChanged.delete(key);
      if (areEndpointsChanged || services.has(key) || isViewChanged) {
        const own = yield* this.plan.updating([key]);
        for (const change of own) changes.push(change);
        this.localEndpoints.update([key]);
        // Of the first snapshot nothing is noted: all of it is new.
        if (slices) {
          const before = { ports: services.get(key)?.previous ?? this.#services.portsOf(key), slices };
          this.#note(key, before, own, isViewChanged ? this.#viewCause : undefined);
        }
      } else this.#pendingChanges?.unchanged(key);
      yield;
    }
    this.#telemetry?.planned(this.plan, changes);
    return { changes, triggers };
  }

  /** Brings the kernel up to date; `undefined` while the first snapshot is incomplete. `next`: after a partial one. */
  async sync(turn: Turn = 'first'): Promise<SyncOutcome | undefined> {
    if (!this.#isSynced) return undefined;
    // The first time the kernel needs all of them at once.
    const replanning = this.#replanning(this.#hasWritten ? turn : undefined);
    this.#timeSlice.begin();
    const started = systemClock.now();
    const { changes, triggers } = await runSliced(replanning, this.#timeSlice);
    const planMs = systemClock.now() - started;
    this.#unwritten.add(changes);
    const writing = this.#unwritten.next(this.#hasWritten ? this.writer.writesPerSync : undefined);
    for (const trigger of triggers) this.#heldTriggers.push(trigger);
    const isPart = writing.length < this.#unwritten.size;
    const isChangeWaiting = (): boolean =>
      isPart || this.#services.pendingCount + this.#endpoints.pendingCount > 0;
    const report = await this.writer.sync(this.plan, writing, isChangeWaiting);
    const causes = this.#hasWritten ? this.#writtenCauses(writing) : startCauses(this.#causes);
    if (!this.#hasWritten) this.#pendingChanges?.begin();
    this.#hasWritten = true;
    const written = this.#unwritten.written(writing);
    const seenAt = this.#pendingChanges?.written(writing, report.refused);
    const isPartial = this.#unwritten.size > 0 || this.#turns.isUnfinished(this.#pending());
    // While something is partly written, they wait for the rest.
    const due = this.#unwritten.size > 0 ? [] : this.#heldTriggers.splice(0);
    return {
      report,
      changes: written,
      triggers: due,
      causes,
      ...(isPartial && { isPartial }),
      planMs,
      seenAt,
    };
  }

  #note(
    service: ObjectKey,
    before: ServiceInputs,
    changes: readonly PlanChange[],
    viewCause: string | undefined,
  ): void {
    const after = { ports: this.#services.portsOf(service), slices: this.#endpoints.slicesOf(service) };
    this.#pendingChanges?.planned({ service, before, after, changes, viewCause });
  }

  /** Those of what is partly written are for the syncs too that write the rest. */
  #writtenCauses(writing: readonly ServicePortId[]): Causes {
    const causes = this.#causes.take();
    if (writing.length < this.#unwritten.size) this.#causes.join(causes);
    return causes;
  }
}

/** Everything is new. */
function startCauses(all: Causes): Causes {
  all.take();
  all.note('start');
  return all.take();
}
