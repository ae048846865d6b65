/** Every endpoint of a service port: which pools it is in, and why it is left out of one. */
import { type Endpoint, mergeSlices, portKey } from '../model/endpointTracker.ts';
import { hostPort } from '../model/ip.ts';
import type { SliceEndpoint } from '../model/objects.ts';
import type { ServicePort } from '../model/serviceTracker.ts';
import { topologyMode } from '../plan/servicePortPlan.ts';
import type { PoolName, ServicePortPlan } from '../plan/types.ts';
import type { FamilySubject, Subject } from './subject.ts';
import type { EndpointName, LeftOutEndpoint, LeftOutReason } from './types.ts';

interface LeftOut {
  readonly reason: LeftOutReason;
  readonly text: string;
}

interface UnusedEndpoint extends LeftOut {
  readonly endpoint: SliceEndpoint;
}

/** Hints that do not count. */
interface IgnoredHints {
  readonly kind: 'zone' | 'node';
  readonly why: string;
}

const NO_POOL: readonly Endpoint[] = [];

export class PortEndpoints {
  /** Of all slices, in the order of their addresses. */
  readonly all: readonly Endpoint[];
  /** How many slices the service has in this family. */
  readonly sliceCount: number;
  /** Endpoints of slices that do not have this port, or of another family where this one has none. */
  readonly unusable: readonly UnusedEndpoint[];
  readonly #port: ServicePort;
  readonly #plan: ServicePortPlan | undefined;
  readonly #family: FamilySubject;
  readonly #details = new Map<string, SliceEndpoint>();
  readonly #beyondCapacity: ReadonlySet<string>;
  readonly #chosen: Readonly<Record<PoolName, ReadonlySet<string>>>;

  constructor(subject: Pick<Subject, 'families'>, family: FamilySubject, port: ServicePort) {
    const { plan } = family;
    const { nodeName } = plan.view;
    const slices = family.slicesOf(port.service);
    const key = portKey(port.portName, port.protocol);
    const ports = new Set([key]);
    this.#port = port;
    this.#family = family;
    this.#plan = plan.servicePorts.get(port.id);
    this.sliceCount = slices.length;
    this.all = mergeSlices(slices, nodeName, { ports }).get(key) ?? [];
    const unported: SliceEndpoint[] = [];
    for (const slice of slices) {
      const numbers = slice.ports.filter((each) => portKey(each.name, each.protocol) === key);
      for (const endpoint of slice.endpoints) {
        for (const each of numbers) this.#note(endpoint, each.port);
        if (numbers.length === 0) unported.push(endpoint);
      }
    }
    const cut = plan.cutsOf(port.service).find(({ field }) => field === 'endpoints');
    const counted = cut && mergeSlices(slices, nodeName, { ports, perPort: cut.served }).get(key);
    const kept = counted && new Set(counted.map((endpoint) => endpoint.key));
    this.#beyondCapacity = new Set(
      kept ? this.all.filter((each) => !kept.has(each.key)).map((each) => each.key) : [],
    );
    this.#chosen = { cluster: keysOf(this.#plan?.pools.cluster), local: keysOf(this.#plan?.pools.local) };
    this.unusable = [
      ...withoutPort(unported, this.all, port),
      ...this.#otherFamily(subject, unported.length),
    ];
  }

  #note(endpoint: SliceEndpoint, port: number): void {
    const key = hostPort(endpoint.ip, port);
    // A running pod beats a terminating one that had the same address.
    if (!endpoint.terminating || !this.#details.has(key)) this.#details.set(key, endpoint);
  }

  /** Where this family has no endpoint at all, those of the other one are what somebody may expect here. */
  #otherFamily({ families }: Pick<Subject, 'families'>, unported: number): readonly UnusedEndpoint[] {
    if (this.all.length > 0 || unported > 0) return [];
    const { service } = this.#port;
    const others = families.filter(({ family }) => family !== this.#family.family);
    return others.flatMap((other) =>
      other.slicesOf(service).flatMap(({ endpoints }) =>
        endpoints.map((endpoint) => ({
          endpoint,
          reason: 'wrong-family' as const,
          text: `its address is ${other.family}, and the frontend's ${this.#family.family}`,
        })),
      ),
    );
  }

  nameOf(endpoint: Pick<Endpoint, 'key' | 'isLocal'>): EndpointName {
    return {
      address: endpoint.key,
      ...detailsOf(this.#details.get(endpoint.key)),
      isLocal: endpoint.isLocal,
    };
  }

  poolsOf(endpoint: Endpoint): readonly PoolName[] {
    return (['cluster', 'local'] as const).filter((pool) => this.#chosen[pool].has(endpoint.key));
  }

  /** All that are not in the pool, with reasons. */
  leftOutOf(pool: PoolName): readonly LeftOutEndpoint[] {
    const left = this.all.flatMap((endpoint): LeftOutEndpoint[] => {
      const why = this.whyNot(endpoint, pool);
      return why ? [{ ...this.nameOf(endpoint), ...why }] : [];
    });
    const { nodeName } = this.#family.plan.view;
    return [...left, ...this.unusable.map((unused) => unusedRow(unused, nodeName))];
  }

  /** `undefined`: it is in the pool. */
  whyNot(endpoint: Endpoint, pool: PoolName): LeftOut | undefined {
    if (this.#chosen[pool].has(endpoint.key)) return undefined;
    if (this.#beyondCapacity.has(endpoint.key))
      return { reason: 'beyond-capacity', text: 'the service has more endpoints than this mode serves' };
    if (pool === 'local' && !endpoint.isLocal)
      return { reason: 'not-local', text: `on ${this.#nodeOf(endpoint)}, and the policy is Local` };
    if (!endpoint.ready) return notReady(endpoint, pool);
    return this.#hintedElsewhere(endpoint, pool);
  }

  #nodeOf(endpoint: Endpoint): string {
    return this.#details.get(endpoint.key)?.nodeName ?? 'no known node';
  }

  #hintedElsewhere(endpoint: Endpoint, pool: PoolName): LeftOut | undefined {
    const { view } = this.#family.plan;
    // Of a policy that needs no such pool, nothing is left out.
    if (pool === 'local' || this.#chosen.cluster.size === 0) return undefined;
    switch (topologyMode(this.#ready(), view)) {
      case 'same-node':
        return {
          reason: 'other-node-hint',
          text: `its hint is for node ${endpoint.nodeHints.join(', ')}`,
        };
      case 'same-zone':
        return {
          reason: 'other-zone',
          text: `its hint is for zone ${endpoint.zoneHints.join(', ')}, and this node is in ${zoneName(view.zone)}`,
        };
      case 'none':
        return undefined;
    }
  }

  #ready(): readonly Endpoint[] {
    return this.all.filter(({ ready, key }) => ready && !this.#beyondCapacity.has(key));
  }

  /** Why hints that some endpoints have do not count on this node. */
  ignoredHints(): IgnoredHints | undefined {
    const { view } = this.#family.plan;
    const ready = this.#ready();
    if (ready.length === 0 || topologyMode(ready, view) !== 'none') return undefined;
    const zoned = ready.filter(({ zoneHints }) => zoneHints.length > 0);
    if (zoned.length > 0) {
      const missing = ready.find(({ zoneHints }) => zoneHints.length === 0);
      const why = missing
        ? `${ready.length - zoned.length} of ${ready.length} ready endpoints have none, ${missing.key} among them`
        : `none of them is for ${zoneName(view.zone)}, where this node is`;
      return { kind: 'zone', why };
    }
    const noded = ready.filter(({ nodeHints }) => nodeHints.length > 0);
    if (noded.length === 0) return undefined;
    const missing = ready.find(({ nodeHints }) => nodeHints.length === 0);
    const why = missing
      ? `${ready.length - noded.length} of ${ready.length} ready endpoints have none, ${missing.key} among them`
      : `none of them is for ${view.nodeName}, which is this node`;
    return { kind: 'node', why };
  }

  /** Those that are used though they are not ready, because none is. */
  terminatingIn(pool: PoolName): readonly Endpoint[] {
    return (this.#plan?.pools[pool] ?? NO_POOL).filter(({ ready }) => !ready);
  }
}

function zoneName(zone: string | undefined): string {
  return zone === undefined ? 'no zone (its Node has no label topology.kubernetes.io/zone)' : `zone ${zone}`;
}

function keysOf(pool: readonly Endpoint[] = NO_POOL): ReadonlySet<string> {
  return new Set(pool.map(({ key }) => key));
}

function notReady({ serving, terminating }: Endpoint, pool: PoolName): LeftOut {
  if (!terminating) return { reason: 'not-ready', text: 'not ready' };
  if (!serving) return { reason: 'terminating', text: 'terminating, and no longer serving' };
  const where = pool === 'local' ? ' on this node' : '';
  return { reason: 'terminating', text: `terminating: used only while no endpoint${where} is ready` };
}

function withoutPort(
  unported: readonly SliceEndpoint[],
  all: readonly Endpoint[],
  port: ServicePort,
): readonly UnusedEndpoint[] {
  const ported = new Set<string>(all.map(({ ip }) => ip));
  const name = port.portName === '' ? 'without a name' : port.portName;
  return unported
    .filter(({ ip }) => !ported.has(ip))
    .map((endpoint) => ({
      endpoint,
      reason: 'no-such-port',
      text: `its EndpointSlice has no ${port.protocol} port ${name}`,
    }));
}

function unusedRow({ endpoint, reason, text }: UnusedEndpoint, nodeName: string): LeftOutEndpoint {
  const isLocal = nodeName !== '' && endpoint.nodeName === nodeName;
  return { address: endpoint.ip, ...detailsOf(endpoint), isLocal, reason, text };
}

export function detailsOf(endpoint: SliceEndpoint | undefined): Pick<EndpointName, 'pod' | 'node' | 'zone'> {
  return {
    ...(endpoint?.pod !== undefined && { pod: endpoint.pod }),
    ...(endpoint?.nodeName !== undefined && { node: endpoint.nodeName }),
    ...(endpoint?.zone !== undefined && { zone: endpoint.zone }),
  };
}
