/**
 * What Junction keeps of the Kubernetes objects: slim, readonly, already checked.
 *
 * `project/` makes these from raw objects. Every string that can reach a rule has been checked there, and every
 * address is canonical.
 */
import { flat } from './flat.ts';
import type { Cidr, Family, Ip } from './ip.ts';

export type Protocol = 'TCP' | 'UDP' | 'SCTP';
export const PROTOCOLS: readonly Protocol[] = ['TCP', 'UDP', 'SCTP'];

/** `namespace/name` */
export type ObjectKey = string;

export function objectKey(namespace: string, name: string): ObjectKey {
  return flat(`${namespace}/${name}`);
}

export type ServiceType = 'ClusterIP' | 'NodePort' | 'LoadBalancer';

/** A Service that a proxy has to serve: never headless, never ExternalName, never another proxy's. */
export interface Service {
  readonly namespace: string;
  readonly name: string;
  readonly type: ServiceType;
  /** Milliseconds since the epoch; decides who keeps an address that two services claim. */
  readonly createdAt: number | undefined;
  readonly clusterIPs: Readonly<Partial<Record<Family, Ip>>>;
  readonly ports: readonly ServicePortSpec[];
  readonly externalIPs: readonly Ip[];
  /** Ingress addresses with ipMode VIP or none. */
  readonly loadBalancerIPs: readonly Ip[];
  readonly loadBalancerSourceRanges: readonly Cidr[];
  /** ClientIP affinity, in seconds. */
  readonly affinitySeconds: number | undefined;
  readonly externalTrafficPolicy: TrafficPolicy;
  readonly internalTrafficPolicy: TrafficPolicy;
  /** 0: none */
  readonly healthCheckNodePort: number;
  /** How many entries of its lists were not even read. */
  readonly unread?: UnreadCounts;
}

export interface UnreadCounts {
  readonly ports: number;
  readonly externalIPs: number;
  readonly loadBalancerIPs: number;
  readonly sourceRanges: number;
}

export type TrafficPolicy = 'Cluster' | 'Local';

export interface ServicePortSpec extends SlicePort {
  /** 0: none */
  readonly nodePort: number;
}

export interface EndpointSlice {
  readonly namespace: string;
  readonly name: string;
  /** Name of the service, from the label `kubernetes.io/service-name`. */
  readonly service: string;
  readonly family: Family;
  readonly ports: readonly SlicePort[];
  readonly endpoints: readonly SliceEndpoint[];
  /** Milliseconds since the epoch, from `endpoints.kubernetes.io/last-change-trigger-time`. */
  readonly triggerTime: number | undefined;
}

export interface SlicePort {
  /** May be empty. */
  readonly name: string;
  readonly protocol: Protocol;
  readonly port: number;
}

export interface SliceEndpoint {
  readonly ip: Ip;
  readonly nodeName: string | undefined;
  readonly ready: boolean;
  readonly serving: boolean;
  readonly terminating: boolean;
  /** Empty: no hints. */
  readonly zoneHints: readonly string[];
  readonly nodeHints: readonly string[];
  /** Name of the pod, from `targetRef`; shown to people, and part of no rule. */
  readonly pod?: string;
  /** For people too: hints decide, and not where an endpoint is. */
  readonly zone?: string;
}

export interface Node {
  readonly name: string;
  /** InternalIPs, then ExternalIPs. */
  readonly ips: readonly Ip[];
  readonly podCIDRs: readonly Cidr[];
  /** Label `topology.kubernetes.io/zone`. */
  readonly zone: string | undefined;
  /** Load balancers may send it traffic: it is not being deleted, and not about to be. */
  readonly eligible: boolean;
}
