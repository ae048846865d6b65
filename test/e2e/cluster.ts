/** Objects for the daemon's tests: services as a few words, as manifests or as an API server holds them. */
import { parseAllDocuments } from 'yaml';
import type { RawObject } from '../support/apiServer/index.ts';

export interface ServiceWords {
  readonly name: string;
  readonly ip: string;
  /** A second address: then the service has both families. */
  readonly ip6?: string;
  readonly nodePort?: number;
  readonly extra?: string;
  /** Pods: `a` and `b` on node1, `c` and `d` on node2. */
  readonly pods: string;
  /** Those of the pods that are not ready. */
  readonly unready?: string;
  /** The zone that each pod is meant for. */
  readonly zones?: Readonly<Record<string, string>>;
}

const PODS: Readonly<Record<string, readonly [ip: string, ip6: string, node: string]>> = {
  a: ['10.244.1.11', 'fd00:244:1::11', 'node1'],
  b: ['10.244.1.12', 'fd00:244:1::12', 'node1'],
  c: ['10.244.2.11', 'fd00:244:2::11', 'node2'],
  d: ['10.244.2.12', 'fd00:244:2::12', 'node2'],
};

export function manifests(services: readonly ServiceWords[]): string {
  return services.map(printService).join('---\n');
}

export function objects(services: readonly ServiceWords[]): readonly RawObject[] {
  return parseAllDocuments(manifests(services)).map((document) => document.toJS() as RawObject);
}

export function nodeObject(zone = 'zone-a', spec: object = {}): RawObject {
  return {
    kind: 'Node',
    apiVersion: 'v1',
    metadata: { name: 'node1', labels: { 'topology.kubernetes.io/zone': zone } },
    spec: { podCIDRs: ['10.244.1.0/24', 'fd00:244:1::/64'], ...spec },
    status: {
      addresses: [
        { type: 'InternalIP', address: '192.168.100.2' },
        { type: 'InternalIP', address: 'fd00:100::2' },
      ],
    },
  };
}

function printService(words: ServiceWords): string {
  const { name, ip, ip6, nodePort, extra = '' } = words;
  const type = nodePort === undefined ? 'ClusterIP' : 'NodePort';
  const dualStack = ip6 === undefined ? '' : `\n  clusterIPs: [${ip}, '${ip6}']\n  ipFamilies: [IPv4, IPv6]`;
  return `apiVersion: v1
kind: Service
metadata: {name: ${name}, namespace: shop}
spec:
  type: ${type}
  clusterIP: ${ip}${dualStack}
  ports: [{name: http, port: 80, targetPort: 8080, protocol: TCP${nodePort === undefined ? '' : `, nodePort: ${nodePort}`}}]
${extra}
---
${printSlice(words, 'IPv4')}${ip6 === undefined ? '' : `---\n${printSlice(words, 'IPv6')}`}`;
}

function printSlice({ name, pods, unready = '', zones = {} }: ServiceWords, family: 'IPv4' | 'IPv6'): string {
  const endpoints = [...pods].map((pod) => {
    const [ip, ip6, node] = PODS[pod] ?? ['', '', ''];
    const address = family === 'IPv4' ? ip : ip6;
    const zone = zones[pod];
    const hints = zone === undefined ? '' : `, hints: {forZones: [{name: ${zone}}]}`;
    return `- {addresses: ['${address}'], nodeName: ${node}, conditions: {ready: ${!unready.includes(pod)}}${hints}}`;
  });
  return `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: ${name}-${family === 'IPv4' ? 1 : 2}, namespace: shop, labels: {kubernetes.io/service-name: ${name}}}
addressType: ${family}
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints: ${endpoints.length === 0 ? '[]' : `\n${endpoints.join('\n')}`}
`;
}
