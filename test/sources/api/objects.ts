/** Raw objects as an API server holds them. */
import type { RawObject } from '../../support/apiServer/index.ts';

export function service(name: string, more: Readonly<Record<string, unknown>> = {}, labels = {}): RawObject {
  return {
    kind: 'Service',
    metadata: { name, namespace: 'shop', uid: `uid-${name}`, labels },
    spec: { type: 'ClusterIP', clusterIP: '10.96.0.10', ports: [{ name: 'http', port: 80 }], ...more },
    status: { loadBalancer: {} },
  };
}

export function slice(name: string, addresses: readonly string[], labels = {}): RawObject {
  return {
    kind: 'EndpointSlice',
    metadata: { name, namespace: 'shop', labels: { 'kubernetes.io/service-name': 'web', ...labels } },
    addressType: 'IPv4',
    ports: [{ name: 'http', protocol: 'TCP', port: 8080 }],
    endpoints: addresses.map((address) => ({ addresses: [address], conditions: { ready: true } })),
  };
}

export function node(name: string, zone = 'zone-a'): RawObject {
  return {
    kind: 'Node',
    metadata: { name, labels: { 'topology.kubernetes.io/zone': zone } },
    spec: { podCIDRs: ['10.244.1.0/24'] },
    status: { addresses: [{ type: 'InternalIP', address: '192.168.0.1' }] },
  };
}

export function serviceCidr(name: string, cidrs: readonly string[]): RawObject {
  return { kind: 'ServiceCIDR', metadata: { name }, spec: { cidrs } };
}

export const SHOP: readonly RawObject[] = [
  node('node1'),
  node('node2'),
  service('web'),
  service('db', { clusterIP: '10.96.0.11' }),
  service('headless', { clusterIP: 'None' }),
  service('other', { clusterIP: '10.96.0.12' }, { 'service.kubernetes.io/service-proxy-name': 'mesh' }),
  slice('web-1', ['10.0.0.1', '10.0.0.2']),
  slice('web-2', ['10.0.0.3']),
  slice('headless-1', ['10.0.0.4'], { 'service.kubernetes.io/headless': '' }),
];
