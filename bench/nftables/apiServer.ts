/** The API server around a whole proxy: a cluster that stands still, but for one service. */
import { generateCluster, type RawObject, TestApiServer } from '../../test/support/apiServer/index.ts';
import {
  type ApiOptions,
  type FromApi,
  monotonicMs,
  NODE_NAME,
  PROBE,
  probeEndpoint,
  type ToApi,
} from './messages.ts';

const NODE: RawObject = {
  kind: 'Node',
  metadata: { name: NODE_NAME },
  spec: {},
  status: { addresses: [{ type: 'InternalIP', address: '10.64.0.1' }] },
};

async function main({ sizes }: ApiOptions): Promise<void> {
  const server = await TestApiServer.start();
  server.put(NODE);
  for (const object of generateCluster({ services: sizes.services, endpointsPerService: sizes.endpoints }))
    server.put(object);
  server.put(probeService(), probeSlice(probeEndpoint(0)));
  process.on('message', ({ endpoint }: ToApi) => {
    const replaced = { at: Date.now(), monotonicMs: monotonicMs() };
    server.put(probeSlice(endpoint));
    tell({ kind: 'replaced', ...replaced });
  });
  process.on('disconnect', () => process.exit());
  tell({ kind: 'listening', url: server.url });
}

function probeService(): RawObject {
  const { address, port, endpointPort } = PROBE;
  return {
    kind: 'Service',
    metadata: {
      name: 'probe',
      namespace: 'default',
      uid: 'probe',
      creationTimestamp: '2026-01-01T00:00:00Z',
    },
    spec: {
      type: 'ClusterIP',
      clusterIP: address,
      clusterIPs: [address],
      ipFamilies: ['IPv4'],
      ipFamilyPolicy: 'SingleStack',
      internalTrafficPolicy: 'Cluster',
      sessionAffinity: 'None',
      ports: [{ name: 'http', protocol: 'TCP', port, targetPort: endpointPort }],
    },
    status: { loadBalancer: {} },
  };
}

function probeSlice(endpoint: string): RawObject {
  return {
    kind: 'EndpointSlice',
    metadata: {
      name: 'probe-1',
      namespace: 'default',
      uid: 'probe-1',
      creationTimestamp: '2026-01-01T00:00:00Z',
      labels: { 'kubernetes.io/service-name': 'probe' },
    },
    addressType: 'IPv4',
    ports: [{ name: 'http', protocol: 'TCP', port: PROBE.endpointPort }],
    endpoints: [{ addresses: [endpoint], conditions: { ready: true, serving: true, terminating: false } }],
  };
}

function tell(message: FromApi): void {
  process.send?.(message);
}

await main(JSON.parse(process.argv[2] ?? '{}') as ApiOptions);
