/** Keeps the plan of one family up to date, by recomputing only the services that changed. */
import { type EndpointsByPort, type MergeLimits, type PortKey, portKey } from '../model/endpointTracker.ts';
import { deepEqual } from '../model/equal.ts';
import type { Family, Ip } from '../model/ip.ts';
import type { ObjectKey, Protocol } from '../model/objects.ts';
import type { ServicePort, ServicePortId } from '../model/serviceTracker.ts';
import { type Capacity, type Cut, endpointCut, UNBOUNDED, withinCapacity } from './capacity.ts';
import { AddressIndex } from './addresses.ts';
import { Claims, frontendAt, type FrontendKey, frontendKey } from './claims.ts';
import { planServicePort } from './servicePortPlan.ts';
import type { FoundFrontend, NodeView, Plan, PlanChange, ServicePortPlan } from './types.ts';

/** Where the planner reads services and endpoints: the trackers. */
interface PlanInputs {
  portsOf(service: ObjectKey): readonly ServicePort[];
  endpointsOf(service: ObjectKey, limits?: MergeLimits): EndpointsByPort;
  /** How many its slices have, whether they count or not. */
  endpointCountOf?(service: ObjectKey): number;
}

const NO_CUTS: readonly Cut[] = [];
const NONE_DENIED: readonly never[] = [];
/** Service ports and endpoints between two moments at which other work may have its turn. */
const COST_PER_STEP = 64;

export class Planner implements Plan {
  readonly family: Family;
  readonly #inputs: PlanInputs;
  #view: NodeView;
  #endpointCount = 0;
  readonly #claims = new Claims();
  readonly #capacity: Capacity;
  /** Most have one, which stands for itself. */
  readonly #portsOfService = new Map<ObjectKey, ServicePortId | readonly ServicePortId[]>();
  /** Of services that are too large. */
  readonly #cuts = new Map<ObjectKey, readonly Cut[]>();
  readonly #newCuts = new Set<ObjectKey>();
  /** As a service port would be if no other one claimed its frontends, where that differs from what was granted. */
  readonly #wanted = new Map<ServicePortId, ServicePortPlan | undefined>();
  readonly #granted = new Map<ServicePortId, ServicePortPlan>();
  readonly #addresses = new AddressIndex();

  constructor(family: Family, view: NodeView, inputs: PlanInputs, capacity: Capacity = UNBOUNDED) {
    this.family = family;
    this.#capacity = capacity;
    this.#view = view;
    this.#inputs = inputs;
  }

  get view(): NodeView {
    return this.#view;
  }

  get servicePorts(): ReadonlyMap<ServicePortId, ServicePortPlan> {
    return this.#granted;
  }

  get endpointCount(): number {
    return this.#endpointCount;
  }

  find(address: Ip | undefined, protocol: Protocol, port: number): FoundFrontend | undefined {
    const owner = this.#claims.ownerOf(frontendKey(address, protocol, port));
    const servicePort = owner === undefined ? undefined : this.#granted.get(owner);
    const frontend = servicePort && frontendAt(servicePort, address, port);
    return servicePort && frontend && { servicePort, frontend };
  }

  *portsAt(address: Ip): Generator<ServicePortPlan> {
    for (const id of this.#addresses.at(address)) {
      const servicePort = this.#granted.get(id);
      if (servicePort) yield servicePort;
    }
  }

  /** Recomputes these services; returns what changed. */
  update(services: Iterable<ObjectKey>): readonly PlanChange[] {
    const steps = this.updating(services);
    for (;;) {
      const step = steps.next();
      if (step.done) return step.value;
    }
  }

  /** The same in small steps: one Service may have a thousand ports. All of them have to be taken. */
  *updating(services: Iterable<ObjectKey>): Generator<void, readonly PlanChange[]> {
    const touched = new Set<ServicePortId>();
    for (const service of services) yield* this.#replan(service, touched);
    return yield* this.#grant(touched);
  }

  /**
   * The node itself changed, e.g. its zone: every service may look different now. The plan stays as it is until these
   * services are recomputed.
   */
  changeView(view: NodeView): readonly ObjectKey[] {
    if (deepEqual(view, this.#view)) return [];
    this.#view = view;
    return [...this.#portsOfService.keys()];
  }

  *#replan(service: ObjectKey, touched: Set<ServicePortId>): Generator<void, void> {
    const bounded = withinCapacity(this.#inputs.portsOf(service), this.#capacity);
    const { ports, endpointsPerPort: perPort } = bounded;
    const keys = oneOrSet(ports, (port): PortKey => portKey(port.portName, port.protocol));
    const endpoints = keys && this.#inputs.endpointsOf(service, { ports: keys, perPort });
    const ids = oneOrSet(ports, (port) => port.id);
    let cost = 0;
    for (const id of listOf(this.#portsOfService.get(service))) {
      if (!ids?.has(id)) this.#setWanted(id, undefined, undefined, touched);
      if (++cost % COST_PER_STEP === 0) yield;
    }
    for (const port of ports) {
      const portEndpoints = endpoints?.get(portKey(port.portName, port.protocol)) ?? [];
      this.#setWanted(port.id, planServicePort(port, portEndpoints, this.#view), port.createdAt, touched);
      cost += 1 + portEndpoints.length;
      if (cost < COST_PER_STEP) continue;
      cost = 0;
      yield;
    }
    if (!ids) this.#portsOfService.delete(service);
    else this.#portsOfService.set(service, ids instanceof One ? ids.value : Array.from(ids));
    const count = ports.length > 0 ? (this.#inputs.endpointCountOf?.(service) ?? 0) : 0;
    this.#setCuts(service, [...bounded.cuts, ...endpointCut(count, bounded, this.#capacity)]);
  }

  #setCuts(service: ObjectKey, cuts: readonly Cut[]): void {
    const before = this.cutsOf(service);
    if (cuts.length + before.length === 0) return;
    if (!deepEqual(cuts, before)) this.#newCuts.add(service);
    if (cuts.length > 0) this.#cuts.set(service, cuts);
    else this.#cuts.delete(service);
  }

  /** What of a service is beyond its capacity. */
  cutsOf(service: ObjectKey): readonly Cut[] {
    return this.#cuts.get(service) ?? NO_CUTS;
  }

  /** Services of which something else is beyond their capacity than when this was last asked. */
  takeNewCuts(): readonly ObjectKey[] {
    const services = [...this.#newCuts];
    this.#newCuts.clear();
    return services;
  }

  #setWanted(
    id: ServicePortId,
    wanted: ServicePortPlan | undefined,
    createdAt: number | undefined,
    touched: Set<ServicePortId>,
  ): void {
    const before = this.#wantedOf(id);
    if (!sameFrontends(before, wanted) || this.#createdAtOf(id, before) !== createdAt) {
      const keys = keysOf(wanted);
      const kept = new Set(keys);
      for (const key of keysOf(before)) {
        if (!kept.has(key)) touch(touched, this.#claims.release(key, id));
      }
      for (const [index, key] of keys.entries()) {
        const isClusterIP = wanted?.frontends[index]?.kind === 'clusterIP';
        touch(touched, this.#claims.claim(key, { id, createdAt, isClusterIP }));
      }
    }
    this.#endpointCount += (wanted?.endpointCount ?? 0) - (before?.endpointCount ?? 0);
    this.#wanted.set(id, wanted);
    touched.add(id);
  }

  #wantedOf(id: ServicePortId): ServicePortPlan | undefined {
    return this.#wanted.has(id) ? this.#wanted.get(id) : this.#granted.get(id);
  }

  /** As its frontends were last claimed. */
  #createdAtOf(id: ServicePortId, wanted: ServicePortPlan | undefined): number | undefined {
    const [key] = keysOf(wanted);
    return key === undefined ? undefined : this.#claims.createdAtOf(key, id);
  }

  *#grant(touched: ReadonlySet<ServicePortId>): Generator<void, readonly PlanChange[]> {
    const changes: PlanChange[] = [];
    let cost = 0;
    for (const id of touched) {
      const previous = this.#granted.get(id);
      const wanted = this.#wantedOf(id);
      const current = this.#withoutForeignFrontends(wanted);
      if (current === wanted) this.#wanted.delete(id);
      else this.#wanted.set(id, wanted);
      if (!deepEqual(previous, current)) {
        if (current) this.#granted.set(id, current);
        else this.#granted.delete(id);
        if (!sameFrontends(previous, current)) this.#addresses.replace(id, previous, current);
        changes.push({ id, previous, current });
      }
      cost += 1 + (wanted?.endpointCount ?? 0);
      if (cost < COST_PER_STEP) continue;
      cost = 0;
      yield;
    }
    return changes;
  }

  #withoutForeignFrontends(wanted: ServicePortPlan | undefined): ServicePortPlan | undefined {
    if (!wanted) return undefined;
    const own = wanted.frontends.filter(
      ({ address, port }) => this.#claims.ownerOf(frontendKey(address, wanted.protocol, port)) === wanted.id,
    );
    return own.length === wanted.frontends.length ? wanted : { ...wanted, frontends: own };
  }

  /** Service ports that asked for a frontend which another one has. */
  waitingFor(address: Ip | undefined, protocol: Protocol, port: number): readonly ServicePortId[] {
    return this.#claims.waitingFor(frontendKey(address, protocol, port));
  }

  /** Frontends that a service port asked for and did not get, with who has them. */
  denied(id: ServicePortId): readonly { readonly key: FrontendKey; readonly owner: ServicePortId }[] {
    const wanted = this.#wantedOf(id);
    // Nearly all have what they asked for, and a list of all services asks for each.
    if (wanted?.frontends.length === this.#granted.get(id)?.frontends.length) return NONE_DENIED;
    return keysOf(wanted).flatMap((key) => {
      const owner = this.#claims.ownerOf(key);
      return owner === undefined || owner === id ? [] : [{ key, owner }];
    });
  }
}

/** A set of one thing. Most services have one port, and to make a set takes as long as to plan it. */
class One<T> implements Pick<ReadonlySet<T>, 'has'> {
  readonly value: T;

  constructor(value: T) {
    this.value = value;
  }

  has(value: T): boolean {
    return value === this.value;
  }
}

/** `undefined`: of no ports. */
function oneOrSet<T extends string>(
  ports: readonly ServicePort[],
  of: (port: ServicePort) => T,
): One<T> | ReadonlySet<T> | undefined {
  const [first] = ports;
  if (!first) return undefined;
  return ports.length === 1 ? new One(of(first)) : new Set(ports.map(of));
}

function listOf<T extends string>(one: T | readonly T[] | undefined): readonly T[] {
  return typeof one === 'string' ? [one] : (one ?? []);
}

function keysOf(plan: ServicePortPlan | undefined): readonly FrontendKey[] {
  return plan ? plan.frontends.map(({ address, port }) => frontendKey(address, plan.protocol, port)) : [];
}

/** The same claims: an endpoint that is added or deleted changes none of them. */
function sameFrontends(a: ServicePortPlan | undefined, b: ServicePortPlan | undefined): boolean {
  if (!a || !b || a.protocol !== b.protocol || a.frontends.length !== b.frontends.length) return false;
  return a.frontends.every(({ address, port, kind }, index) => {
    const other = b.frontends[index];
    return address === other?.address && port === other?.port && kind === other?.kind;
  });
}

function touch(touched: Set<ServicePortId>, id: ServicePortId | undefined): void {
  if (id !== undefined) touched.add(id);
}
