/** Manifests for the daemon's tests: services as a few words. */
export interface ServiceWords {
  readonly name: string;
  readonly ip: string;
  readonly nodePort?: number;
  readonly extra?: string;
  /** Pods: `a` and `b` on node1, `c` and `d` on node2. */
  readonly pods: string;
}

const PODS: Readonly<Record<string, readonly [ip: string, node: string]>> = {
  a: ['10.244.1.11', 'node1'],
  b: ['10.244.1.12', 'node1'],
  c: ['10.244.2.11', 'node2'],
  d: ['10.244.2.12', 'node2'],
};

export function manifests(services: readonly ServiceWords[]): string {
  return services.map(printService).join('---\n');
}

function printService({ name, ip, nodePort, extra = '', pods }: ServiceWords): string {
  const type = nodePort === undefined ? 'ClusterIP' : 'NodePort';
  const endpoints = [...pods].map((pod) => {
    const [address, node] = PODS[pod] ?? ['', ''];
    return `- {addresses: [${address}], nodeName: ${node}, conditions: {ready: true}}`;
  });
  return `apiVersion: v1
kind: Service
metadata: {name: ${name}, namespace: shop}
spec:
  type: ${type}
  clusterIP: ${ip}
  ports: [{name: http, port: 80, targetPort: 8080, protocol: TCP${nodePort === undefined ? '' : `, nodePort: ${nodePort}`}}]
${extra}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: ${name}-1, namespace: shop, labels: {kubernetes.io/service-name: ${name}}}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints: ${endpoints.length === 0 ? '[]' : `\n${endpoints.join('\n')}`}
`;
}
