/** The test API server takes and refuses what kube-apiserver 1.36.4 takes and refuses. */
import { request } from 'undici';
import { expect, it, onTestFinished } from 'vitest';
import { type StreamingLists, TestApiServer } from '../../support/apiServer/index.ts';
import { FakeClock } from '../../time/fakeClock.ts';
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
  ['labelSelector=app%20in%20(a,b),!x', 200],
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
  const clock = new FakeClock();
  const server = await TestApiServer.start({ clock, streamsLists });
  onTestFinished(() => server.close());
  server.put(...SHOP);
  const answer = request(`${server.url}/api/v1/services?${query}`, {
    headers: { accept: 'application/json' },
  });
  const seen: { statusCode?: number } = {};
  let text = '';
  const read = answer.then(async (response) => {
    seen.statusCode = response.statusCode;
    response.body.setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
    await new Promise((resolve) => response.body.once('close', resolve).once('error', resolve));
  });
  // A watch that goes on is cut when it has said what it says at its beginning.
  for (let turn = 0; turn < 300 && (seen.statusCode === undefined || turn < 30); turn++) {
    await new Promise((resolve) => setTimeout(resolve, 1));
    await clock.advance(100);
  }
  server.dropConnections();
  await read;
  const [event] = text.split('\n');
  const code = event?.startsWith('{"type":"ERROR"')
    ? (JSON.parse(event) as { readonly object: { readonly code: number } }).object.code
    : undefined;
  return seen.statusCode === 200 && code !== undefined ? [200, code] : (seen.statusCode ?? 0);
}

const PROTOBUF = 'application/vnd.kubernetes.protobuf';

it.each([
  [undefined, true, 200, 'application/json'],
  ['application/json', true, 200, 'application/json'],
  // As kube-proxy asks.
  [`${PROTOBUF}, */*`, true, 200, PROTOBUF],
  [`${PROTOBUF},application/json`, true, 200, PROTOBUF],
  [`application/json,${PROTOBUF}`, true, 200, 'application/json'],
  [`${PROTOBUF};q=0.5,application/json`, true, 200, 'application/json'],
  [PROTOBUF, true, 200, PROTOBUF],
  // One that has no protobuf.
  [`${PROTOBUF}, application/json`, false, 200, 'application/json'],
  [PROTOBUF, false, 406, 'application/json'],
])('accept: %s (has protobuf: %s): %i %s', async (accept, hasProtobuf, expected, type) => {
  const server = await TestApiServer.start({ hasProtobuf });
  onTestFinished(() => server.close());
  const options = accept === undefined ? {} : { headers: { accept } };
  const { statusCode, headers, body } = await request(`${server.url}/api/v1/services`, options);
  await body.dump();
  expect(statusCode).toBe(expected);
  expect(headers['content-type']).toBe(type);
});
