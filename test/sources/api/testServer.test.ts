/** The test API server takes and refuses what kube-apiserver 1.36.4 takes and refuses. */
import { expect, it, onTestFinished } from 'vitest';
import { type ApiServerOptions, type StreamingLists, TestApiServer } from '../../support/apiServer/index.ts';
import { MemoryNetwork } from '../../support/apiServer/memoryNetwork.ts';
import { openAccess } from './harness.ts';
import { SHOP } from './objects.ts';

/** The status, and the code of the error event where a watch is answered with one. */
type Outcome = number | readonly [200, number];

const EXPECTED: readonly (readonly [query: string, Outcome])[] = [
  ['limit=2', 200],
  ['limit=-1', 200],
  ['limit=x', 400],
  ['resourceVersion=0', 200],
  ['resourceVersion=x', 400],
  // With a limit and no word on the match, exactly that version.
  ['resourceVersion=105&limit=2', 200],
  ['resourceVersion=5&limit=2', 410],
  ['resourceVersion=5', 200],
  ['resourceVersion=105&limit=2&resourceVersionMatch=NotOlderThan', 200],
  ['resourceVersion=9999', 504],
  ['resourceVersionMatch=NotOlderThan', 422],
  ['resourceVersion=0&resourceVersionMatch=Exact', 422],
  ['sendInitialEvents=true', 422],
  ['continue=abc', 400],
  ['labelSelector=a%3Db', 200],
  ['labelSelector=app,!x', 200],
  ['labelSelector=%3D%3Db', 400],
  ['fieldSelector=spec.type%3DClusterIP', 200],
  ['fieldSelector=spec.foo%3Dx', 400],
  ['fieldSelector=metadata.name%3Dweb', 200],
  // What it does not know it ignores.
  ['lmit=2', 200],
  // client-go sends it with every request.
  ['timeout=5s&timeoutSeconds=5&limit=2', 200],
  ['timeout=abc', 400],
  ['timeoutSeconds=abc', 400],
  // From no version in particular: it begins with what there is.
  ['watch=true', 200],
  ['watch=1&resourceVersion=0', 200],
  ['watch=true&resourceVersion=105&limit=2', 200],
  ['watch=true&resourceVersion=105&timeout=7m&timeoutSeconds=0', 200],
  ['watch=true&resourceVersion=1', [200, 410]],
  ['watch=true&resourceVersion=9999', 200],
  ['watch=true&resourceVersion=x', 500],
  ['watch=true&resourceVersion=105&resourceVersionMatch=NotOlderThan', 422],
  ['watch=true&sendInitialEvents=true', 422],
  ['watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan', 200],
  ['watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=9999', [200, 504]],
];

it.each(EXPECTED)('services?%s: %j', async (query, expected) => {
  expect(await outcomeOf(query)).toEqual(expected);
});

it.each<[StreamingLists, Outcome]>([
  [true, 200],
  [false, 422],
  ['noWatchProgress', [200, 500]],
])('a streaming list (%s): %j', async (streamsLists, expected) => {
  const query = 'watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true';
  expect(await outcomeOf(query, streamsLists)).toEqual(expected);
});

async function outcomeOf(query: string, streamsLists: StreamingLists = true): Promise<Outcome> {
  const { status, text } = await ask(`?${query}`, { streamsLists });
  const [event] = text.split('\n');
  if (!event?.startsWith('{"type":"ERROR"')) return status;
  return [200, (JSON.parse(event) as { readonly object: { readonly code: number } }).object.code];
}

/** What is said at the beginning: a watch goes on. */
async function ask(query: string, options: ApiServerOptions) {
  const network = new MemoryNetwork();
  const server = await TestApiServer.start({ ...options, network });
  onTestFinished(() => server.close());
  server.put(...SHOP);
  const dispatcher = network.createDispatcher(openAccess(server.url), {});
  const path = `/api/v1/services${query}`;
  const answer = dispatcher.request({ origin: server.url, path, method: 'GET' });
  // The server waits for a version that it does not have yet.
  await network.clock.advance(5000);
  const { statusCode: status, body } = await answer;
  let text = '';
  body.setEncoding('utf8').on('data', (part: string) => {
    text += part;
  });
  body.on('error', () => undefined);
  await network.quiet();
  server.dropConnections();
  return { status, text };
}
