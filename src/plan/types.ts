/**
 * The plan: for one address family, which frontends exist on this node and what happens to a packet for each.
 * No chain names, no kernel words. Modes compile it; `decide` says what it means.
 */
import type { Endpoint } from '../model/endpointTracker.ts';
import type { Cidr, Family, Ip } from '../model/ip.ts';
import type { ObjectKey, Protocol } from '../model/objects.ts';
import type { ServicePortId } from '../model/serviceTracker.ts';
import type { ReservedAddress } from './view.ts';

/** What the plan has to know of this node. */
export interface NodeView {
  readonly nodeName: string;
  readonly zone: string | undefined;
  /** The node's own address in this family. */
  readonly nodeIp: Ip | undefined;
  readonly localDetector: LocalTrafficDetector;
  readonly masqueradeAll: boolean;
  readonly nodePorts: NodePortAddresses;
  readonly allowExternalIPs: boolean;
  /** Not to be served as an external or load-balancer IP. */
  readonly reserved?: readonly ReservedAddress[];
}

/** How to detect that a packet comes from a pod of this cluster. */
export type LocalTrafficDetector =
  | { readonly kind: 'none' }
  | { readonly kind: 'cidr'; readonly cidr: Cidr }
  | { readonly kind: 'interface'; readonly name: string }
  | { readonly kind: 'interfacePrefix'; readonly prefix: string };

/** On which of the node's addresses node ports answer. */
export interface NodePortAddresses {
  /** `all`: every address of the node. */
  readonly ranges: 'all' | readonly Cidr[];
  /** Also on loopback addresses, where `ranges` has them. */
  readonly loopback: boolean;
}

export type FrontendKind = 'clusterIP' | 'externalIP' | 'loadBalancerIP' | 'nodePort';

/** An address that a client can dial. */
export interface Frontend {
  readonly kind: FrontendKind;
  /** `undefined` for a node port: it has the node's addresses. */
  readonly address: Ip | undefined;
  readonly port: number;
  readonly routes: Routes;
  /** `undefined`: every source may come. */
  readonly allowedSources: AllowedSources | undefined;
}

export interface AllowedSources {
  readonly ranges: readonly Cidr[];
  /** Load-balancer addresses that this node itself uses as a source when it dials one of them. */
  readonly hosts: readonly Ip[];
}

/** Where a packet came from. `pod` wins over `node` where both are true. */
export type SourceClass = 'pod' | 'node' | 'outside';

/** What a frontend does with a packet, by where it came from. */
export type Routes = Readonly<Record<SourceClass, Route>>;

export type Route =
  | { readonly verdict: 'forward'; readonly pool: PoolName; readonly masquerade: boolean }
  /** No usable endpoint anywhere: tell the client. */
  | { readonly verdict: 'reject' }
  /** Endpoints elsewhere but none on this node, and the policy asks for local ones: stay silent. */
  | { readonly verdict: 'drop' };

export type PoolName = 'cluster' | 'local';
export type Pool = readonly Endpoint[];

export interface EndpointAddress {
  readonly ip: Ip;
  readonly port: number;
}

export interface ServicePortPlan {
  readonly id: ServicePortId;
  readonly service: ObjectKey;
  /** `namespace/name:port` */
  readonly name: string;
  readonly protocol: Protocol;
  /** Cluster IP, external IPs, load-balancer IPs, node port, in this order. */
  readonly frontends: readonly Frontend[];
  /** Of the cluster IP. */
  readonly internal: Routes;
  /** Of everything else. */
  readonly external: Routes;
  /** Absent where nothing may use it, or nothing is in it. */
  readonly pools: Readonly<Partial<Record<PoolName, Pool>>>;
  /**
   * Endpoints that get nothing new from this node but still serve: a datagram flow that one of them has stays with it.
   * Only for UDP and SCTP, and absent where there is none.
   */
  readonly draining?: Pool;
  /** External and load-balancer IPs that are not served because they are reserved. Absent where there is none. */
  readonly refusedIPs?: readonly Ip[];
  /** Every endpoint on this node, usable or not: who dials itself through the service. Absent where there is none. */
  readonly localEndpoints?: readonly EndpointAddress[];
  /** Clients outside are seen by endpoints as they are. */
  readonly preservesClientIP: boolean;
  readonly affinitySeconds: number | undefined;
  /** 0: none */
  readonly healthCheckNodePort: number;
  /** All endpoints, usable or not. */
  readonly endpointCount: number;
}

export type ServicePortPlans = ReadonlyMap<ServicePortId, ServicePortPlan>;

export interface PlanChange {
  readonly id: ServicePortId;
  readonly previous: ServicePortPlan | undefined;
  readonly current: ServicePortPlan | undefined;
}

export interface Plan {
  readonly family: Family;
  readonly view: NodeView;
  readonly servicePorts: ServicePortPlans;
  /** Sum of all service ports' endpoints. */
  readonly endpointCount: number;
  /** The service port that answers at an address, or at a node port where `address` is undefined. */
  find(address: Ip | undefined, protocol: Protocol, port: number): FoundFrontend | undefined;
  /** Service ports that answer at an address, at any port. */
  portsAt(address: Ip): Iterable<ServicePortPlan>;
}

export interface FoundFrontend {
  readonly servicePort: ServicePortPlan;
  readonly frontend: Frontend;
}
