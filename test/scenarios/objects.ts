/**
 * Kubernetes objects in few words. What comes out is the same as what `kubectl get -o yaml` would print, less what a
 * proxy does not read.
 *
 *   service('web', { clusterIP: '10.96.1.1', ports: 'http=80:30080 dns=53/UDP' })    ports as kubectl prints them
 *   slice('web', 'http=8080', 'pod-a', 'pod-c terminating', 'pod-d zone=west')       endpoints are hosts of the lab
 */
import { stringify } from 'yaml';
import { addressOf, type HostName, HOST_NAMES, POD_CIDRS, PODS_OF } from '../../lab/topology.ts';
import { FAMILIES, type Family } from '../../src/model/ip.ts';

/** A Kubernetes object; slices get their names when they are printed. */
export type KubernetesObject = Readonly<Record<string, unknown>>;

export interface ServiceFields {
  /** One address, or one of each family. */
  readonly clusterIP: string;
  readonly ports?: string;
  readonly type?: 'ClusterIP' | 'NodePort' | 'LoadBalancer' | 'ExternalName';
  readonly externalIPs?: readonly string[];
  /** An address, or `ADDRESS ipMode=Proxy`. */
  readonly loadBalancerIPs?: readonly string[];
  readonly sourceRanges?: readonly string[];
  readonly externalTrafficPolicy?: 'Cluster' | 'Local';
  readonly internalTrafficPolicy?: 'Cluster' | 'Local';
  readonly affinitySeconds?: number;
  readonly created?: string;
  readonly labels?: Readonly<Record<string, string>>;
}

export function service(name: string, fields: ServiceFields): KubernetesObject {
  const clusterIPs = fields.clusterIP.split(' ');
  const { affinitySeconds: timeoutSeconds } = fields;
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      namespace: 'default',
      name,
      labels: fields.labels,
      creationTimestamp: fields.created,
    },
    spec: {
      type: fields.type ?? 'ClusterIP',
      clusterIP: clusterIPs[0],
      clusterIPs,
      ipFamilies: clusterIPs.map((ip) => (ip.includes(':') ? 'IPv6' : 'IPv4')),
      ports: (fields.ports ?? '80').split(' ').map(servicePort),
      externalIPs: fields.externalIPs,
      loadBalancerSourceRanges: fields.sourceRanges,
      externalTrafficPolicy: fields.externalTrafficPolicy,
      internalTrafficPolicy: fields.internalTrafficPolicy,
      ...(timeoutSeconds !== undefined && {
        sessionAffinity: 'ClientIP',
        sessionAffinityConfig: { clientIP: { timeoutSeconds } },
      }),
    },
    ...(fields.loadBalancerIPs && {
      status: { loadBalancer: { ingress: fields.loadBalancerIPs.map(ingress) } },
    }),
  };
}

function ingress(text: string): KubernetesObject {
  const [ip, ipMode] = text.split(' ipMode=');
  return ipMode === undefined ? { ip } : { ip, ipMode };
}

const PORT = /^(?:([a-z0-9-]+)=)?(\d+)(?::(\d+))?(?:\/(TCP|UDP|SCTP))?$/;

/** `80`, `80:30080`, `dns=53/UDP` */
function servicePort(text: string): KubernetesObject {
  const [, name = '', port, nodePort, protocol = 'TCP'] = PORT.exec(text) ?? [];
  if (port === undefined) throw new Error(`not a port: ${text}`);
  return {
    name,
    port: Number(port),
    protocol,
    ...(nodePort !== undefined && { nodePort: Number(nodePort) }),
  };
}

export function slice(name: string, ports: string, ...endpoints: readonly string[]): KubernetesObject {
  return sliceOf('IPv4', name, ports, endpoints);
}

export function slice6(name: string, ports: string, ...endpoints: readonly string[]): KubernetesObject {
  return sliceOf('IPv6', name, ports, endpoints);
}

function sliceOf(
  addressType: Family,
  name: string,
  ports: string,
  endpoints: readonly string[],
): KubernetesObject {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { namespace: 'default', labels: { 'kubernetes.io/service-name': name } },
    addressType,
    ports: ports.split(' ').map(servicePort),
    endpoints: endpoints.map((text) => endpoint(text, addressType)),
  };
}

interface EndpointFields {
  conditions: Readonly<Record<string, boolean>>;
  nodeName?: string | undefined;
  readonly forZones: string[];
  readonly forNodes: string[];
}

/** How an endpoint is; none of these: ready. */
const CONDITIONS: Readonly<Record<string, Readonly<Record<string, boolean>>>> = {
  terminating: { ready: false, serving: true, terminating: true },
  terminated: { ready: false, serving: false, terminating: true },
  'not-ready': { ready: false, serving: false, terminating: false },
  'serving-only': { ready: false, serving: true, terminating: false },
  'ready-while-terminating': { ready: true, serving: true, terminating: true },
  unknown: {},
};

function endpoint(text: string, family: Family): KubernetesObject {
  const [name = '', ...words] = text.split(' ');
  const host = hostNamed(name);
  const fields: EndpointFields = {
    conditions: { ready: true, serving: true, terminating: false },
    nodeName: nodeOf(host),
    forZones: [],
    forNodes: [],
  };
  for (const word of words) describe(fields, word);
  const hints = {
    ...(fields.forZones.length > 0 && { forZones: fields.forZones.map((zone) => ({ name: zone })) }),
    ...(fields.forNodes.length > 0 && { forNodes: fields.forNodes.map((node) => ({ name: node })) }),
  };
  return {
    addresses: [addressOf(host, family)],
    conditions: fields.conditions,
    nodeName: fields.nodeName,
    targetRef: { kind: 'Pod', namespace: 'default', name: host },
    ...(Object.keys(hints).length > 0 && { hints }),
  };
}

function describe(fields: EndpointFields, word: string): void {
  const conditions = CONDITIONS[word];
  if (conditions) fields.conditions = conditions;
  else if (word === 'no-node') fields.nodeName = undefined;
  else if (word.startsWith('zone=')) fields.forZones.push(word.slice('zone='.length));
  else if (word.startsWith('node=')) fields.forNodes.push(word.slice('node='.length));
  else throw new Error(`not a word about an endpoint: ${word}`);
}

export function hostNamed(text: string): HostName {
  const host = HOST_NAMES.find((name) => name === text);
  if (host === undefined) throw new Error(`the lab has no host ${text}`);
  return host;
}

function nodeOf(host: HostName): string {
  if (host === 'node1' || host === 'node2') return host;
  return PODS_OF.node1.some((pod) => pod === host) ? 'node1' : 'node2';
}

/** The node under test. */
export function node1(zone: string | undefined): KubernetesObject {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: 'node1',
      ...(zone !== undefined && { labels: { 'topology.kubernetes.io/zone': zone } }),
    },
    spec: { podCIDRs: FAMILIES.map((family) => POD_CIDRS.node1[family]) },
    status: {
      addresses: FAMILIES.map((family) => ({ type: 'InternalIP', address: addressOf('node1', family) })),
    },
  };
}

export function printManifests(objects: readonly KubernetesObject[]): string {
  return objects.map((object, index) => stringify(named(object, index))).join('---\n');
}

function named(object: KubernetesObject, index: number): KubernetesObject {
  if (object['kind'] !== 'EndpointSlice') return object;
  return { ...object, metadata: { ...(object['metadata'] as KubernetesObject), name: `slice-${index}` } };
}
