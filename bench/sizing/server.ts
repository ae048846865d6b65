/** The API server of the benchmark: a process of its own, so that neither its memory nor its time is counted. */
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { type AddressInfo } from 'node:net';
import { createServer } from 'node:tls';
import { generateCluster, type RawObject, TestApiServer } from '../../test/support/apiServer/index.ts';
import { ChangingCluster } from './changingCluster.ts';
import { type FromServer, NODE_NAME, type ServerOptions, type ToServer } from './serverMessages.ts';

const NODE: RawObject = {
  kind: 'Node',
  metadata: { name: NODE_NAME },
  spec: {},
  status: { addresses: [{ type: 'InternalIP', address: '192.0.2.10' }] },
};

async function main(options: ServerOptions): Promise<void> {
  const server = await TestApiServer.start({ history: 10_000 });
  const cluster = new ChangingCluster(server);
  server.put(NODE);
  const { services, endpoints: endpointsPerService, isDualStack } = options;
  for (const object of generateCluster({ services, endpointsPerService, isDualStack })) cluster.add(object);
  process.on('message', (message: ToServer) => {
    void cluster.churn(message).then((changes) => tell({ kind: 'churned', changes }));
  });
  process.on('disconnect', () => process.exit());
  const port = await listen(options.certificates, Number(new URL(server.url).port));
  tell({ kind: 'listening', port });
}

/** TLS before the server, so that reading is as costly as it is in a real cluster. */
async function listen(certificates: string, innerPort: number): Promise<number> {
  const read = (name: string): string => readFileSync(`${certificates}/${name}`, 'utf8');
  const outer = createServer({ cert: read('server.crt'), key: read('server.key') }, (socket) => {
    const inner = connect(innerPort, '127.0.0.1');
    inner.setNoDelay(true);
    socket.setNoDelay(true);
    socket.on('error', () => inner.destroy());
    inner.on('error', () => socket.destroy());
    socket.pipe(inner).pipe(socket);
  });
  await new Promise<void>((resolve) => {
    outer.listen(0, '127.0.0.1', resolve);
  });
  return (outer.address() as AddressInfo).port;
}

function tell(message: FromServer): void {
  process.send?.(message);
}

await main(JSON.parse(process.argv[2] ?? '{}') as ServerOptions);
