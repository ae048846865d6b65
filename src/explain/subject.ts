/** What questions are answered from: one node's plan with its inputs, of a running proxy, of manifests, of a cluster or of a bundle. */
import type { Cidr, Family, Ip } from '../model/ip.ts';
import type { ModeName } from '../model/mode.ts';
import type { EndpointSlice, ObjectKey } from '../model/objects.ts';
import type { ServicePort, ServicePortId } from '../model/serviceTracker.ts';
import type { Host } from '../plan/decide.ts';
import type { Planner } from '../plan/planner.ts';
import type { DetectLocal } from '../plan/view.ts';
import type { KernelReader } from '../modes/kernelRules.ts';
import type { ChangeRecord } from './types.ts';

export interface Subject {
  readonly nodeName: string;
  readonly mode: ModeName;
  /** Of iptables: `current` or `classic`. */
  readonly layout: string;
  readonly families: readonly FamilySubject[];
  /** Milliseconds since the epoch. */
  now(): number;
  /** How pods are told from others, as configured: answers name the setting. */
  readonly detectLocal?: DetectLocal['mode'];
  /** net.ipv4.ip_local_port_range; unset: the kernel's default. */
  readonly ephemeralPorts?: PortRange;
  /** Where cluster IPs come from, as far as nftables mode knows. */
  readonly serviceCidrs?: readonly Cidr[];
  /** The interface by which packets of a source come in, by the node's routes. */
  interfaceFrom?(source: Ip): Promise<string | undefined>;
  /** The addresses of a pod (`shop/web-1`), where more is known of pods than the endpoints. */
  podIps?(pod: ObjectKey): Promise<readonly Ip[] | undefined>;
  /** Where an object is written: `examples/web.yaml:19`. Unset where that is not known. */
  locate?(object: string): string | undefined;
  /** Why a Service that is not in the plan is not served: headless, ExternalName, another proxy's. `undefined`: there is none. */
  unserved?(service: ObjectKey): Promise<UnservedService | undefined>;
  /** Of a service, newest first. */
  changesOf?(service: ObjectKey): readonly ChangeRecord[];
  /** What the kernel counted of an endpoint (`10.244.1.11:8081`) of a service port; unset where nothing counts. */
  connectionsOf?(
    family: Family,
    servicePort: ServicePortId,
    endpoint: string,
  ): EndpointConnections | undefined;
  /** To be called often during long work, between packets and between services: a promise to await, where others wait. */
  pause?(): Promise<void> | undefined;
}

interface EndpointConnections {
  readonly connections: number;
  /** When the kernel was read, in milliseconds since the epoch. */
  readonly countedAt: number;
}

export interface PortRange {
  readonly first: number;
  readonly last: number;
}

export interface UnservedService {
  readonly code: 'headless' | 'external-name' | 'other-proxy' | 'no-cluster-ip' | 'other-family' | 'invalid';
  readonly reason: string;
  readonly where?: string;
}

export interface FamilySubject {
  readonly family: Family;
  readonly plan: Planner;
  /** This node's own addresses. */
  readonly host: Host;
  portsOf(service: ObjectKey): readonly ServicePort[];
  slicesOf(service: ObjectKey): readonly EndpointSlice[];
  /** All services of this family. */
  services(): Iterable<ObjectKey>;
  /** Service ports that the kernel refused, with what it said. */
  readonly refused: ReadonlyMap<ServicePortId, string>;
  /** Unset where no kernel is asked. */
  readonly kernel?: KernelReader;
}
