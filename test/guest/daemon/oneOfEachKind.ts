/** One service of each kind, and a Node. */
const HERE = (ip: string): string => endpoint(ip, 'node1');
const ELSEWHERE = (ip: string): string => endpoint(ip, 'node2');

export const ONE_OF_EACH_KIND = [
  `apiVersion: v1
kind: Node
metadata: {name: node1}
spec: {podCIDRs: [10.244.1.0/24, 'fd00:244:1::/64']}
status: {addresses: [{type: InternalIP, address: 192.168.100.2}, {type: InternalIP, address: 'fd00:100::2'}]}
`,
  service(
    'api',
    `  clusterIP: 10.96.20.1
  ports: [{name: http, port: 80, targetPort: 8080, protocol: TCP}]`,
  ),
  slice('api', [HERE('10.244.1.11'), HERE('10.244.1.12'), ELSEWHERE('10.244.2.11')]),
  service(
    'dns',
    `  clusterIP: 10.96.20.2
  ports:
  - {name: dns, port: 53, targetPort: 53, protocol: UDP}
  - {name: dns-tcp, port: 53, targetPort: 53, protocol: TCP}`,
  ),
  slice(
    'dns',
    [ELSEWHERE('10.244.2.12')],
    '[{name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53, protocol: TCP}]',
  ),
  service(
    'web',
    `  type: LoadBalancer
  clusterIP: 10.96.20.3
  externalTrafficPolicy: Local
  healthCheckNodePort: 31503
  sessionAffinity: ClientIP
  sessionAffinityConfig: {clientIP: {timeoutSeconds: 180}}
  loadBalancerSourceRanges: [192.0.2.0/24, 198.18.0.0/15]
  ports: [{name: http, port: 80, targetPort: 8080, nodePort: 30503, protocol: TCP}]
status: {loadBalancer: {ingress: [{ip: 203.0.113.23}]}}`,
  ),
  slice('web', [HERE('10.244.1.11'), ELSEWHERE('10.244.2.11')]),
  service(
    'shopfront',
    `  type: NodePort
  clusterIP: 10.96.20.4
  externalIPs: [198.51.100.24]
  ports: [{name: http, port: 8080, targetPort: 8080, nodePort: 30504, protocol: TCP}]`,
  ),
  slice('shopfront', [HERE('10.244.1.12'), ELSEWHERE('10.244.2.12')]),
  service(
    'empty',
    `  type: NodePort
  clusterIP: 10.96.20.5
  externalIPs: [198.51.100.25]
  ports: [{name: http, port: 80, targetPort: 8080, nodePort: 30505, protocol: TCP}]`,
  ),
  service(
    'here-only',
    `  clusterIP: 10.96.20.6
  internalTrafficPolicy: Local
  ports: [{name: http, port: 80, targetPort: 8080, protocol: TCP}]`,
  ),
  slice('here-only', [HERE('10.244.1.11'), ELSEWHERE('10.244.2.11')]),
  service(
    'six',
    `  type: LoadBalancer
  clusterIP: 'fd00:96::20'
  clusterIPs: ['fd00:96::20']
  ipFamilies: [IPv6]
  ports: [{name: http, port: 80, targetPort: 8080, nodePort: 30507, protocol: TCP}]
status: {loadBalancer: {ingress: [{ip: '2001:db8:113::27'}]}}`,
  ),
  slice('six', [HERE('fd00:244:1::11'), ELSEWHERE('fd00:244:2::11')]),
].join('---\n');

function service(name: string, spec: string): string {
  return `apiVersion: v1
kind: Service
metadata: {name: ${name}, namespace: shop}
spec:
${spec}
`;
}

function slice(
  name: string,
  endpoints: readonly string[],
  ports = '[{name: http, port: 8080, protocol: TCP}]',
): string {
  return `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: ${name}-1, namespace: shop, labels: {kubernetes.io/service-name: ${name}}}
addressType: ${endpoints.join('').includes('::') ? 'IPv6' : 'IPv4'}
ports: ${ports}
endpoints:
${endpoints.join('\n')}
`;
}

function endpoint(ip: string, node: string): string {
  return `- {addresses: ['${ip}'], nodeName: ${node}, conditions: {ready: true}}`;
}
