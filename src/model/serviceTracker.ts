/**
 * Folds service events between two syncs into one previous/current pair per service.
 *
 * What a service was before the first event and is after the last is compared by the values that a proxy uses, so
 * an edit of anything else, an add that was deleted again, or a change that was taken back costs nothing.
 */
import { flat } from './flat.ts';
import { deepEqual } from './equal.ts';
import { type Cidr, type Family, familyOf, type Ip, prefixOf } from './ip.ts';
import {
  type ObjectKey,
  objectKey,
  type Protocol,
  type Service,
  type ServiceType,
  type UnreadCounts,
} from './objects.ts';

export interface ServiceChange {
  readonly previous: readonly ServicePort[];
  readonly current: readonly ServicePort[];
}

const NONE: readonly ServicePort[] = [];

export class ServiceTracker {
  readonly #family: Family;
  readonly #applied = new Map<ObjectKey, readonly ServicePort[]>();
  readonly #pending = new Map<ObjectKey, readonly ServicePort[]>();

  constructor(family: Family) {
    this.#family = family;
  }

  /** Notes what a service is now; `undefined`: it is gone. Returns whether anything is pending at all. */
  update(key: ObjectKey, service: Service | undefined): boolean {
    const current = service ? servicePorts(service, this.#family) : NONE;
    if (deepEqual(current, this.portsOf(key))) this.#pending.delete(key);
    else this.#pending.set(key, current);
    return this.#pending.size > 0;
  }

  get pendingCount(): number {
    return this.#pending.size;
  }

  /** The ports of a service as of the last `apply`. */
  portsOf(key: ObjectKey): readonly ServicePort[] {
    return this.#applied.get(key) ?? NONE;
  }

  get size(): number {
    return this.#applied.size;
  }

  keys(): IterableIterator<ObjectKey> {
    return this.#applied.keys();
  }

  /** Services with changes that are not applied yet. */
  pendingServices(): readonly ObjectKey[] {
    return [...this.#pending.keys()];
  }

  /** The ports that a service will have, if that is pending. */
  pendingPortsOf(key: ObjectKey): readonly ServicePort[] | undefined {
    return this.#pending.get(key);
  }

  /** Makes the pending changes of these services current and hands them out. */
  apply(services: Iterable<ObjectKey> = this.pendingServices()): ReadonlyMap<ObjectKey, ServiceChange> {
    const changes = new Map<ObjectKey, ServiceChange>();
    for (const key of services) {
      const current = this.#pending.get(key);
      if (!current) continue;
      this.#pending.delete(key);
      changes.set(key, { previous: this.portsOf(key), current });
      if (current.length > 0) this.#applied.set(key, current);
      else this.#applied.delete(key);
    }
    return changes;
  }
}

/** `namespace/name:port/TCP`, or `namespace/name/TCP` for a port without a name. */
export type ServicePortId = string;

export function serviceOfPortId(id: ServicePortId): ObjectKey {
  return /^[^/]*\/[^/:]*/.exec(id)?.[0] ?? id;
}

export interface ServicePort {
  readonly id: ServicePortId;
  readonly service: ObjectKey;
  /** `namespace/name:port`, or `namespace/name`: what people see in comments and logs. */
  readonly name: string;
  readonly portName: string;
  readonly type: ServiceType;
  readonly protocol: Protocol;
  readonly clusterIP: Ip;
  readonly port: number;
  /** 0: none */
  readonly nodePort: number;
  readonly externalIPs: readonly Ip[];
  readonly loadBalancerIPs: readonly Ip[];
  /** Empty: everybody may come. */
  readonly sourceRanges: readonly Cidr[];
  readonly affinitySeconds: number | undefined;
  readonly externalPolicyLocal: boolean;
  readonly internalPolicyLocal: boolean;
  /** 0: none */
  readonly healthCheckNodePort: number;
  readonly createdAt: number | undefined;
  readonly unread?: UnreadCounts | undefined;
}

/** The service ports that a Service has in a family; none where it has no cluster IP there. */
export function servicePorts(service: Service, family: Family): readonly ServicePort[] {
  const clusterIP = service.clusterIPs[family];
  if (clusterIP === undefined) return [];
  const key = objectKey(service.namespace, service.name);
  const ofFamily = <T extends Ip | Cidr>(addresses: readonly T[]): readonly T[] =>
    addresses.length === 0 ? addresses : addresses.filter((address) => familyOf(address) === family);
  const externalIPs = ofFamily(service.externalIPs);
  const ranges = ofFamily(service.loadBalancerSourceRanges);
  const sourceRanges = restrictingRanges(ranges);
  // Those of this family may all be among the ranges that were too many to read: no range lets everybody in.
  const isClosed = ranges.length === 0 && (service.unread?.sourceRanges ?? 0) > 0;
  const loadBalancerIPs = isClosed ? [] : ofFamily(service.loadBalancerIPs);
  const externalPolicyLocal = isExternalPolicyLocal(service);
  const checksHealth = service.type === 'LoadBalancer' && externalPolicyLocal;
  return service.ports.map((port) => {
    const name = port.name === '' ? key : flat(`${key}:${port.name}`);
    return {
      id: flat(`${name}/${port.protocol}`),
      service: key,
      name,
      portName: port.name,
      type: service.type,
      protocol: port.protocol,
      clusterIP,
      port: port.port,
      nodePort: port.nodePort,
      externalIPs,
      loadBalancerIPs,
      sourceRanges,
      affinitySeconds: service.affinitySeconds,
      externalPolicyLocal,
      internalPolicyLocal: service.internalTrafficPolicy === 'Local',
      healthCheckNodePort: checksHealth ? service.healthCheckNodePort : 0,
      createdAt: service.createdAt,
      ...(service.unread && { unread: service.unread }),
    };
  });
}

/** Any client outside the cluster can reach it: by node port, load balancer or external IP. */
export function isExternallyAccessible(port: ServicePort): boolean {
  return port.nodePort !== 0 || port.loadBalancerIPs.length > 0 || port.externalIPs.length > 0;
}

export function usesClusterEndpoints(port: ServicePort): boolean {
  return !port.internalPolicyLocal || isExternallyAccessible(port);
}

export function usesLocalEndpoints(port: ServicePort): boolean {
  return port.internalPolicyLocal || (port.externalPolicyLocal && isExternallyAccessible(port));
}

function isExternalPolicyLocal(service: Service): boolean {
  if (service.externalTrafficPolicy !== 'Local') return false;
  return service.type !== 'ClusterIP' || service.externalIPs.length > 0;
}

/** A range that holds every address makes the whole list pointless. */
function restrictingRanges(ranges: readonly Cidr[]): readonly Cidr[] {
  return ranges.some((range) => prefixOf(range) === 0) ? [] : ranges;
}
