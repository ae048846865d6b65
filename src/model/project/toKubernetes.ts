/**
 * Slim objects → Kubernetes' own shape: the way back from `project/`. What is written here reads as the same slim object
 * again, so that a snapshot needs no reader of its own.
 */
import { type Cidr, FAMILIES, type Family, familyOf, type Ip } from '../ip.ts';
import type {
  EndpointSlice,
  Node,
  Service,
  ServicePortSpec,
  SliceEndpoint,
  UnreadCounts,
} from '../objects.ts';
import type { ServicePort } from '../serviceTracker.ts';
import { MOST_ITEMS } from '../../text/cursor.ts';
import { printRfc3339 } from '../../text/time.ts';
import { SERVICE_NAME } from './endpointSlice.ts';
import { apiVersionOf, type ObjectKind, TRIGGER_TIME } from './names.ts';
import { DOOMED, ZONE } from './node.ts';
import { MOST_PORTS } from './service.ts';

/** An object as `kubectl get -o json` prints it. */
export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: ObjectKind;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly [field: string]: unknown;
}

function kubernetesObject(
  kind: ObjectKind,
  metadata: KubernetesObject['metadata'],
  rest: Readonly<Record<string, unknown>>,
): KubernetesObject {
  return { apiVersion: apiVersionOf(kind), kind, metadata, ...rest };
}

export function serviceToKubernetes(service: Service): KubernetesObject {
  const { namespace, name, createdAt, clusterIPs, affinitySeconds, unread } = service;
  const families = FAMILIES.filter((family) => clusterIPs[family] !== undefined);
  const addresses = families.map((family) => clusterIPs[family]);
  const ports = service.ports.map(portToKubernetes);
  const ingress = service.loadBalancerIPs.map((ip) => ({ ip, ipMode: 'VIP' }));
  const spec = {
    type: service.type,
    clusterIP: addresses[0],
    clusterIPs: addresses,
    ipFamilies: families,
    // What was too much to read is there as empty items: their number counts.
    ports: padded<unknown>(ports, unread?.ports, null, MOST_PORTS),
    externalIPs: padded<string>(service.externalIPs, unread?.externalIPs, ''),
    loadBalancerSourceRanges: padded<string>(service.loadBalancerSourceRanges, unread?.sourceRanges, ''),
    ...(affinitySeconds !== undefined && {
      sessionAffinity: 'ClientIP',
      sessionAffinityConfig: { clientIP: { timeoutSeconds: affinitySeconds } },
    }),
    externalTrafficPolicy: service.externalTrafficPolicy,
    internalTrafficPolicy: service.internalTrafficPolicy,
    ...(service.healthCheckNodePort !== 0 && { healthCheckNodePort: service.healthCheckNodePort }),
  };
  const metadata = {
    namespace,
    name,
    ...(createdAt !== undefined && { creationTimestamp: printRfc3339(createdAt) }),
  };
  const status = { loadBalancer: { ingress: padded<object>(ingress, unread?.loadBalancerIPs, {}) } };
  return kubernetesObject('Service', metadata, { spec, status });
}

function portToKubernetes({ name, protocol, port, nodePort }: ServicePortSpec): object {
  return { name, protocol, port, ...(nodePort !== 0 && { nodePort }) };
}

/** With as many empty items that just so many lie beyond what is read. */
function padded<T>(
  items: readonly T[],
  unread: number | undefined,
  empty: T,
  most = MOST_ITEMS,
): readonly T[] {
  if (unread === undefined || unread === 0) return items;
  return [...items, ...Array<T>(most - items.length + unread).fill(empty)];
}

export function endpointSliceToKubernetes(slice: EndpointSlice): KubernetesObject {
  const { namespace, name, service, family, ports, triggerTime } = slice;
  const metadata = {
    namespace,
    name,
    labels: { [SERVICE_NAME]: service },
    ...(triggerTime !== undefined && { annotations: { [TRIGGER_TIME]: printRfc3339(triggerTime) } }),
  };
  const endpoints = slice.endpoints.map((endpoint) => endpointToKubernetes(endpoint, namespace));
  return kubernetesObject('EndpointSlice', metadata, { addressType: family, ports, endpoints });
}

function endpointToKubernetes(endpoint: SliceEndpoint, namespace: string): object {
  const { ip, nodeName, ready, serving, terminating, zoneHints, nodeHints, pod, zone } = endpoint;
  const hints = {
    ...(zoneHints.length > 0 && { forZones: zoneHints.map((name) => ({ name })) }),
    ...(nodeHints.length > 0 && { forNodes: nodeHints.map((name) => ({ name })) }),
  };
  return {
    addresses: [ip],
    conditions: { ready, serving, terminating },
    ...(nodeName !== undefined && { nodeName }),
    ...(Object.keys(hints).length > 0 && { hints }),
    ...(zone !== undefined && { zone }),
    ...(pod !== undefined && { targetRef: { kind: 'Pod', namespace, name: pod } }),
  };
}

export function nodeToKubernetes({ name, ips, podCIDRs, zone, eligible }: Node): KubernetesObject {
  const metadata = { name, ...(zone !== undefined && { labels: { [ZONE]: zone } }) };
  const spec = { podCIDRs, ...(!eligible && { taints: [{ key: DOOMED, effect: 'NoSchedule' }] }) };
  const status = { addresses: ips.map((address) => ({ type: 'InternalIP', address })) };
  return kubernetesObject('Node', metadata, { spec, status });
}

const EVERYBODY: Readonly<Record<Family, Cidr>> = { IPv4: '0.0.0.0/0' as Cidr, IPv6: '::/0' as Cidr };

/**
 * The Service that has these service ports, those of both families together. The trackers keep service ports and not
 * Services; what a Service says besides makes no difference to a proxy. `undefined`: there are none.
 */
export function serviceOfPorts(ports: readonly ServicePort[]): Service | undefined {
  const [first] = ports;
  if (first === undefined) return undefined;
  const byFamily = FAMILIES.flatMap(
    (family) => ports.find(({ clusterIP }) => familyOf(clusterIP) === family) ?? [],
  );
  const [namespace = '', name = ''] = first.service.split('/');
  const clusterIPs: Partial<Record<Family, Ip>> = {};
  for (const { clusterIP } of byFamily) clusterIPs[familyOf(clusterIP)] = clusterIP;
  const externalIPs = byFamily.flatMap((port) => port.externalIPs);
  const { unread } = first;
  return {
    namespace,
    name,
    type: typeOf(first, externalIPs),
    createdAt: first.createdAt,
    clusterIPs,
    ports: ports
      .filter(({ clusterIP }) => clusterIP === first.clusterIP)
      .map(({ portName, protocol, port, nodePort }) => ({ name: portName, protocol, port, nodePort })),
    externalIPs,
    loadBalancerIPs: byFamily.flatMap((port) => port.loadBalancerIPs),
    loadBalancerSourceRanges: byFamily.flatMap((port) => sourceRangesOf(port, unread)),
    affinitySeconds: first.affinitySeconds,
    externalTrafficPolicy: ports.some((port) => port.externalPolicyLocal) ? 'Local' : 'Cluster',
    internalTrafficPolicy: first.internalPolicyLocal ? 'Local' : 'Cluster',
    healthCheckNodePort: first.healthCheckNodePort,
    ...(unread !== undefined && { unread }),
  };
}

/** With external IPs of a family in which it has no cluster IP, the policy Local counts; without them it does for this type. */
function typeOf({ type, externalPolicyLocal }: ServicePort, externalIPs: readonly Ip[]): Service['type'] {
  return type === 'ClusterIP' && externalPolicyLocal && externalIPs.length === 0 ? 'NodePort' : type;
}

/** A service port that everybody may reach has no ranges; together with unread ones, none would mean nobody. */
function sourceRangesOf(port: ServicePort, unread: UnreadCounts | undefined): readonly Cidr[] {
  const isOpen = port.sourceRanges.length === 0 && port.loadBalancerIPs.length > 0;
  if (!isOpen || (unread?.sourceRanges ?? 0) === 0) return port.sourceRanges;
  return [EVERYBODY[familyOf(port.clusterIP)]];
}
