/**
 * Datagram flows that are wrong: the kernel tracks where the first packet of a flow went and sends the rest there,
 * whatever has become of the endpoint, the service or the rules. TCP finds out by itself; UDP and SCTP do not.
 *
 * A flow is judged by the plan as it is when the flow is looked at. A change only says which flows to look at, and
 * what used to be there.
 */
import type { Endpoint } from '../model/endpointTracker.ts';
import { hostPort, type Ip } from '../model/ip.ts';
import type { Protocol } from '../model/objects.ts';
import { frontendAt, type FrontendKey, frontendKey } from './claims.ts';
import { answersNodePorts, isLocal } from './decide.ts';
import type { Frontend, Plan, PlanChange, ServicePortPlan } from './types.ts';

export interface Flow {
  readonly protocol: Protocol;
  /** What the client dials. */
  readonly destination: Ip;
  readonly destinationPort: number;
  /** Where the replies come from: an endpoint, or the destination itself where nothing was rewritten. */
  readonly answerer: Ip;
  readonly answererPort: number;
}

/** Flows to this address and port; to this port of any address where `address` is undefined. */
export interface FlowQuestion {
  readonly protocol: Protocol;
  readonly address: Ip | undefined;
  readonly port: number;
}

export interface FlowReview {
  readonly questions: readonly FlowQuestion[];
  /** Flows that no question asks about are never stale. */
  isStale(flow: Flow): boolean;
}

/** Looks at what these changes concern. Yields after each: there may be tens of thousands. */
export function* reviewChanges(
  changes: Iterable<PlanChange>,
  plan: Plan,
  localIps: readonly Ip[],
): Generator<void, FlowReview> {
  const review = new Review(plan, localIps);
  for (const change of changes) {
    review.addChange(change);
    yield;
  }
  return review;
}

/** Looks at everything that the plan serves as well. */
export function reviewAll(
  changes: Iterable<PlanChange>,
  plan: Plan,
  localIps: readonly Ip[],
): Generator<void, FlowReview> {
  return reviewChanges(allOf(changes, plan), plan, localIps);
}

/**
 * Flows that began while rules were missing: nothing translated them, and the kernel asks rules about the first packet of a flow
 * alone. A client of TCP would send its first packet again and again, for half a minute, into the same flow.
 */
export function* reviewUntranslated(plan: Plan, localIps: readonly Ip[]): Generator<void, FlowReview> {
  const review = new Review(plan, localIps);
  const questions = new Map<number, FlowQuestion>();
  for (const { protocol, frontends } of plan.servicePorts.values()) {
    if (protocol !== 'TCP') continue; // of the others every flow is reviewed
    for (const { port } of frontends) questions.set(port, { protocol, address: undefined, port });
    yield;
  }
  return { questions: [...questions.values()], isStale: (flow) => review.isUntranslated(flow) };
}

function* allOf(changes: Iterable<PlanChange>, plan: Plan): Generator<PlanChange> {
  yield* changes;
  for (const current of plan.servicePorts.values()) yield { id: current.id, previous: undefined, current };
}

type Keys = ReadonlySet<string>;
const NOBODY: Keys = new Set();

class Review implements FlowReview {
  readonly #plan: Plan;
  readonly #addresses: readonly Ip[];
  readonly #questions = new Map<FrontendKey, FlowQuestion>();
  /**
   * Who served at a frontend before, in each of the changes. The sets are shared by all frontends of a service port: a
   * copy for each took time and memory by the product of addresses and endpoints.
   */
  readonly #before = new Map<FrontendKey, readonly Keys[]>();
  readonly #servers = new WeakMap<ServicePortPlan, Keys>();
  readonly #isNodeAddress = new Map<Ip, boolean>();

  constructor(plan: Plan, localIps: readonly Ip[]) {
    this.#plan = plan;
    this.#addresses = localIps;
  }

  get questions(): readonly FlowQuestion[] {
    return [...this.#questions.values()];
  }

  addChange({ previous, current }: PlanChange): void {
    const { protocol } = previous ?? current ?? { protocol: 'TCP' };
    if (protocol === 'TCP') return;
    const before = this.#serversOf(previous);
    for (const frontend of concerned(previous, current, before, this.#serversOf(current))) {
      const { address, port } = frontend;
      const key = frontendKey(address, protocol, port);
      this.#questions.set(key, { protocol, address, port });
      if (!previous || !frontendAt(previous, address, port)) continue;
      this.#before.set(key, [...(this.#before.get(key) ?? []), before]);
    }
  }

  isStale(flow: Flow): boolean {
    const { protocol, destination, destinationPort } = flow;
    const byAddress = frontendKey(destination, protocol, destinationPort);
    const served = this.#plan.find(destination, protocol, destinationPort);
    if (served) return this.#questions.has(byAddress) && !this.#mayAnswer(served.servicePort, flow);
    // Nothing is served here any more. What was not rewritten was not ours.
    if (this.#before.has(byAddress)) return isRewritten(flow);
    return this.#isStaleAtNodePort(flow);
  }

  /** It was dialled at a service that has endpoints, and the service did not translate it. */
  isUntranslated(flow: Flow): boolean {
    if (isRewritten(flow)) return false;
    const { protocol, destination, destinationPort } = flow;
    const served =
      this.#plan.find(destination, protocol, destinationPort) ??
      (this.#answersAt(destination) ? this.#plan.find(undefined, protocol, destinationPort) : undefined);
    if (!served || this.#serversOf(served.servicePort).size === 0) return false;
    return !this.#mayAnswer(served.servicePort, flow);
  }

  #isStaleAtNodePort(flow: Flow): boolean {
    const { protocol, destination, destinationPort } = flow;
    const key = frontendKey(undefined, protocol, destinationPort);
    if (!this.#questions.has(key)) return false;
    const servicePort = this.#plan.find(undefined, protocol, destinationPort)?.servicePort;
    if (servicePort && this.#mayAnswer(servicePort, flow)) return false;
    const wentToOurs = this.#before.get(key)?.some((servers) => servers.has(answererOf(flow))) ?? false;
    if (wentToOurs) return true;
    // Another host's address with the same port number is none of our business.
    return this.#answersAt(destination) && (servicePort !== undefined || isRewritten(flow));
  }

  #mayAnswer(servicePort: ServicePortPlan, flow: Flow): boolean {
    return this.#serversOf(servicePort).has(answererOf(flow));
  }

  /** Whether node ports answer on an address. Cached, because thousands of flows have the same few. */
  #answersAt(address: Ip): boolean {
    const known = this.#isNodeAddress.get(address);
    if (known !== undefined) return known;
    const answers =
      isLocal(address, { addresses: this.#addresses }) &&
      answersNodePorts(this.#plan.view.nodePorts, address);
    this.#isNodeAddress.set(address, answers);
    return answers;
  }

  #serversOf(servicePort: ServicePortPlan | undefined): Keys {
    if (!servicePort) return NOBODY;
    let servers = this.#servers.get(servicePort);
    if (!servers) this.#servers.set(servicePort, (servers = keysOf(serversOf(servicePort))));
    return servers;
  }
}

/**
 * Everybody whom a flow of this service port may stay with: who serves. An endpoint may be ready without serving
 * (publishNotReadyAddresses); it keeps its flows only where nobody serves, as with kube-proxy.
 */
function serversOf({ pools, draining }: ServicePortPlan): readonly Endpoint[] {
  const all = [pools.cluster, pools.local, draining].flatMap((pool) => pool ?? []);
  const serving = all.filter((endpoint) => endpoint.serving);
  return serving.length > 0 ? serving : all;
}

function keysOf(endpoints: readonly Endpoint[]): Keys {
  return new Set(endpoints.map(({ key }) => key));
}

/** Frontends whose flows a change can have made wrong. Most changes only add an endpoint, and concern none. */
function concerned(
  previous: ServicePortPlan | undefined,
  current: ServicePortPlan | undefined,
  before: Keys,
  after: Keys,
): readonly Frontend[] {
  const old = previous?.frontends ?? [];
  const now = current?.frontends ?? [];
  const isAnyGone = [...before].some((server) => !after.has(server));
  const came = now.filter(({ address, port }) => !previous || !frontendAt(previous, address, port));
  if (isAnyGone || (before.size === 0 && after.size > 0)) return [...old, ...came];
  const left = old.filter(({ address, port }) => !current || !frontendAt(current, address, port));
  return [...left, ...came];
}

function isRewritten(flow: Flow): boolean {
  return flow.answerer !== flow.destination || flow.answererPort !== flow.destinationPort;
}

function answererOf({ answerer, answererPort }: Flow): string {
  return hostPort(answerer, answererPort);
}
