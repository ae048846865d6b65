/** A small cluster behind an API server. Prints the server's address; each line on standard input changes an endpoint of one service. */
import { createInterface } from 'node:readline';
import { nodeObject, objects, type ServiceWords } from '../../test/e2e/cluster.ts';
import { TestApiServer } from '../../test/support/apiServer/index.ts';

const service = (pods: string): ServiceWords => ({ name: 'api', ip: '10.96.1.1', nodePort: 30_080, pods });

const server = await TestApiServer.start();
server.put(nodeObject());
for (const object of objects([service('ac')])) server.put(object);
process.stdout.write(`${server.url}\n`);
for await (const pods of createInterface({ input: process.stdin })) {
  const slices = objects([service(pods)]).filter(({ kind }) => kind === 'EndpointSlice');
  for (const slice of slices) server.put(slice);
}
process.exit();
