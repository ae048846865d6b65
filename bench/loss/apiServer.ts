/** An API server that stands still, in the network of node1: kube-proxy reads no manifests. Prints its address. */
import { TestApiServer } from '../../test/support/apiServer/index.ts';
import { nodeObject, objects } from '../../test/e2e/cluster.ts';
import { SERVICES } from './traffic.ts';

const server = await TestApiServer.start();
server.put(nodeObject());
for (const object of objects(SERVICES)) server.put(object);
process.stdout.write(`${server.url}\n`);
