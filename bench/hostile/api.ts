/** The API server of this benchmark: a small cluster, and a tenant with a large object. */
import { generateCluster, type RawObject, TestApiServer } from '../../test/support/apiServer/index.ts';
import { NODE_NAME } from '../nftables/messages.ts';
import {
  type ApiOptions,
  ENDPOINT_PORT,
  type FromApi,
  OTHER,
  probeEndpoint,
  type ToApi,
} from './messages.ts';
import { HOSTILE } from './objects.ts';

const CREATED = '2026-01-01T00:00:00Z';

async function main({ hostile, services }: ApiOptions): Promise<void> {
  const large = HOSTILE.find(({ name }) => name === hostile);
  if (!large) throw new Error(`no object ${hostile}`);
  const server = await TestApiServer.start();
  server.put({
    kind: 'Node',
    metadata: { name: NODE_NAME },
    spec: {},
    status: { addresses: [{ type: 'InternalIP', address: '10.64.0.1' }] },
  });
  for (const object of generateCluster({ services, endpointsPerService: 3 })) server.put(object);
  server.put(...otherService(), otherSlice(0));
  const objects = large.objects();
  process.on('message', (message: ToApi) => {
    const at = Date.now();
    if (message.kind === 'delete') for (const each of objects) server.delete(each.kind, keyOf(each));
    else if (message.what === 'objects') server.put(...objects);
    else
      server.put(...(message.what === 'other' ? [otherSlice(message.times)] : large.change(message.times)));
    tell({ kind: 'done', at });
  });
  process.on('disconnect', () => process.exit());
  tell({ kind: 'listening', url: server.url });
}

function keyOf({ metadata }: RawObject): string {
  const { namespace, name } = metadata as { readonly namespace: string; readonly name: string };
  return `${namespace}/${name}`;
}

function otherService(): readonly RawObject[] {
  return [
    {
      kind: 'Service',
      metadata: { name: 'other', namespace: 'default', uid: 'other', creationTimestamp: CREATED },
      spec: {
        type: 'ClusterIP',
        clusterIP: OTHER.address,
        clusterIPs: [OTHER.address],
        ports: [{ name: 'http', protocol: 'TCP', port: OTHER.port, targetPort: ENDPOINT_PORT }],
      },
      status: { loadBalancer: {} },
    },
  ];
}

function otherSlice(times: number): RawObject {
  return {
    kind: 'EndpointSlice',
    metadata: {
      name: 'other-1',
      namespace: 'default',
      uid: 'other-1',
      creationTimestamp: CREATED,
      labels: { 'kubernetes.io/service-name': 'other' },
    },
    addressType: 'IPv4',
    ports: [{ name: 'http', protocol: 'TCP', port: ENDPOINT_PORT }],
    endpoints: [{ addresses: [probeEndpoint('other', times)], conditions: { ready: true } }],
  };
}

function tell(message: FromApi): void {
  process.send?.(message);
}

await main(JSON.parse(process.argv[2] ?? '{}') as ApiOptions);
