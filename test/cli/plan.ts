/** `junction plan` of one mode, and endpoints for its services to have. */
import { junction, type Run } from './junction.ts';

/** Of the service shop/web: the first is on node-a, which is planned for. */
export const WEB_ENDPOINTS = `---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-1, namespace: shop, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ name: http, port: 8080 }]
endpoints:
  - { addresses: [10.244.0.1], nodeName: node-a }
  - { addresses: [10.244.1.1], nodeName: node-b }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-2, namespace: shop, labels: { kubernetes.io/service-name: web } }
addressType: IPv6
ports: [{ name: http, port: 8080 }]
endpoints: [{ addresses: ["fd00:244::1"], nodeName: node-b }]
`;

export type Planner = (...flags: readonly string[]) => Promise<Run>;

export function plannerFor(mode: 'iptables' | 'ipvs' | 'nftables', manifests: string): Planner {
  return (...flags) =>
    junction(
      'plan',
      '--manifests',
      manifests,
      `--proxy-mode=${mode}`,
      '--hostname-override=node-a',
      '--cluster-cidr=10.244.0.0/16,fd00:244::/32',
      ...flags,
    );
}
