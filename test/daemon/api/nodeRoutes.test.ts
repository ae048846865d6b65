/** The local API as a function, without a daemon: what it answers, what it refuses, and its stream of events. */
import { afterEach, describe, expect, test } from 'vitest';
import { WatchFeed } from '../../../src/daemon/api/feed.ts';
import { nodeRoutes } from '../../../src/daemon/api/nodeRoutes.ts';
import { apiPage } from '../../../src/daemon/api/routes.ts';
import { QuestionTurns } from '../../../src/daemon/api/turns.ts';
import type { Subject } from '../../../src/explain/subject.ts';
import type {
  ChangeRecord,
  ServiceExplanation,
  ServiceObjects,
  ServiceRow,
  WatchEvent,
} from '../../../src/explain/types.ts';
import { systemClock } from '../../../src/time/systemClock.ts';
import { clusterOf } from '../../explain/given.ts';
import { service, slice, slice6 } from '../../scenarios/objects.ts';
import { FULL_STATUS } from '../../support/fullStatus.ts';
import { FakeClock } from '../../time/fakeClock.ts';
import { askPage, requestTo } from './ask.ts';

const OBJECTS = [
  service('web', { clusterIP: '10.96.1.1 fd00:96::1', ports: 'http=80' }),
  slice('web', 'http=8080', 'pod-a', 'pod-c'),
  slice6('web', 'http=8080', 'pod-a'),
  service('db', { clusterIP: '10.96.1.2' }),
  slice('db', '5432', 'pod-d'),
  service('idle', { clusterIP: '10.96.1.3' }),
];
const CLUSTER = clusterOf(OBJECTS);

function record(id: number, name: string): ChangeRecord {
  return { id, family: 'IPv4', service: name, causes: [], effects: [], seenAt: id, plannedAt: id };
}

function flows(deleted: number): WatchEvent {
  return { kind: 'conntrack', at: 0, family: 'IPv4', deleted, ms: 1 };
}

const DB = record(2, 'default/db');
const WEB = record(1, 'default/web');
let subject: () => Subject = () => CLUSTER;
let countConnections: (() => Promise<void>) | undefined;
const reported: unknown[] = [];
afterEach(() => {
  subject = () => CLUSTER;
  reported.length = 0;
});

function node(feed?: WatchFeed) {
  const routes = nodeRoutes({
    status: () => FULL_STATUS,
    subject: () => subject(),
    countConnections: () => countConnections?.() ?? Promise.resolve(),
    turns: new QuestionTurns({ clock: systemClock, isSyncing: () => false }),
    snapshot: () => (async function* () {})(),
    recentEvents: () =>
      feed?.recent ?? [WEB, DB].map((each) => ({ kind: 'change', ...each }) satisfies WatchEvent),
    ...(feed && { watch: (signal: AbortSignal) => feed.subscribe(signal) }),
  });
  return apiPage(routes, (error) => reported.push(error));
}

const page = node();
const ask = (path: string) => askPage(page, path);

async function answerTo<T>(path: string): Promise<T> {
  const { status, text } = await ask(path);
  expect([status, text]).toEqual([200, text]);
  return JSON.parse(text) as T;
}

const MANY = Array.from({ length: 201 }, (_, index) => `service=shop/s${index}`).join('&');

/** A part of the path or of the parameters, by name; or of the message. */
test.each([
  ['/v1/explain/default', 404, 'not-found'],
  ['/v1/explain/default/', 404, 'not-found'],
  ['/v1/explain/default/web/x', 404, 'not-found'],
  ['/v2/services', 404, 'not-found'],
  ['/v1/explain/default/web?prot=80', 400, 'there is no parameter \\"prot\\" here'],
  [`/v1/explain/default/web?port=${'8'.repeat(2000)}`, 400, 'port is longer than 1024 characters'],
  ['/v1/explain/default/web?kernel=all', 400, 'kernel must be none'],
  ['/v1/explain/Default/web', 400, 'this is not the name of a Service'],
  [`/v1/services?${MANY}`, 400, '201 services are asked for, of at most 200'],
  ['/v1/services?service=a/b&format=table', 400, 'service goes with no other parameter'],
  ['/v1/services?format=yaml', 400, 'format must be json or table'],
  ['/v1/names?kind=nodes&endpoint=10.', 400, 'endpoint'],
  ['/v1/events?kind=syncs', 400, 'kind must be one of change, sync, foreign'],
  ['/v1/objects/default/wep', 400, 'did you mean default/web?'],
  ['/v1/doctor', 404, 'no-machine'],
  ['/v1/nodes', 404, 'this page is about one node'],
  ['/v1/explain?from=node', 400, 'the parameter \\"to\\" is missing'],
  ['/v1/explain?from=nobody&to=10.96.1.1:80', 400, '"parameter":"from"'],
  ['/v1/explain?from=pod/default/none&to=10.96.1.1:80', 400, '"parameter":"from"'],
  ['/v1/explain?from=fd00:244:1::11&to=10.96.1.1:80', 400, '"parameter":"from"'],
  ['/v1/explain?from=node&to=10.96.1.1', 400, '"parameter":"to"'],
  ['/v1/explain?from=node&to=svc/default/none', 400, '"parameter":"to"'],
  ['/v1/explain?from=node&to=svc/default/web:81', 400, '"parameter":"to"'],
])('%s is refused: %i %s', async (path, status, reason) => {
  const refusal = await ask(path);
  expect(refusal).toEqual({ status, text: expect.stringContaining(reason) });
  expect(JSON.parse(refusal.text)).toMatchObject({ error: { code: expect.any(String) } });
});

test.each([
  [{ method: 'POST' }, 405],
  [{ method: 'DELETE' }, 405],
  [{ method: 'HEAD' }, 405],
  [{ headers: { 'content-length': '5' } }, 413],
  [{ headers: { 'transfer-encoding': 'chunked' } }, 413],
])('changes nothing and has no body: %o', async (more, status) => {
  expect((await askPage(page, '/v1/services', more)).status).toBe(status);
});

test('a failure says nothing of the inside, and is reported', async () => {
  const failure = new Error('on purpose');
  subject = () => {
    throw failure;
  };
  const { status, text } = await ask('/v1/names?kind=services');
  expect([status, text.includes('on purpose'), reported]).toEqual([500, false, [failure]]);
});

test('services: rows of all, of those that are named, and a table of each subject', async () => {
  const rows = async (query: string): Promise<readonly string[]> => {
    const { text } = await ask(`/v1/services${query}`);
    const items = JSON.parse(text) as readonly ServiceRow[];
    expect(text.trim().split('\n')).toHaveLength(items.length + 2);
    return items.map((row) => `${row.service} ${row.state}`);
  };
  expect(await rows('')).toEqual(['default/web ok', 'default/db ok', 'default/idle no endpoints']);
  const named = ['idle', 'none', 'w%65b'].map((name) => `service=default/${name}`).join('&');
  expect(await rows(`?${named}&service=x`)).toEqual(['default/idle no endpoints', 'default/web ok']);
  const table = async (): Promise<readonly string[]> =>
    (await ask('/v1/services?format=table')).text.split('\n').map((line) => line.split('\t')[0] ?? '');
  const all = ['SERVICE', 'default/db', 'default/idle', 'default/web', ''];
  expect([await table(), await table()]).toEqual([all, all]);
  const fewer = clusterOf(OBJECTS.slice(0, 3));
  subject = () => fewer;
  expect(await table()).toEqual(['SERVICE', 'default/web', '']);
});

test.each([
  ['kind=services&endpoint=10.244.', ['default/db', 'default/web']],
  ['kind=services&endpoint=10.244.1.', ['default/web']],
  ['kind=services&endpoint=fd00:244:', ['default/web']],
  ['kind=services&endpoint=10.96.', []],
  ['kind=services&prefix=default/d&endpoint=10.', ['default/db']],
  ['kind=endpoints&namespace=default&prefix=pod-', ['pod-a', 'pod-c', 'pod-d']],
  ['kind=endpoints&namespace=def', []],
])('names: %s', async (query, names) => {
  expect(await answerTo(`/v1/names?${query}`)).toEqual(names);
});

test('objects of a service; what an endpoint got is read before the answer, and says when', async () => {
  const { service: whole, endpointSlices } = await answerTo<ServiceObjects>('/v1/objects/default/web');
  expect([whole.kind, endpointSlices.length]).toEqual(['Service', 2]);
  let reads = 0;
  countConnections = async () => void (await Promise.resolve(), reads++);
  subject = () => ({ ...CLUSTER, connectionsOf: () => ({ connections: reads, countedAt: 7 }) });
  expect(await answerTo('/v1/endpoints/default/db')).toMatchObject([
    { pod: 'pod-d', connections: 1, countedAt: 7 },
  ]);
});

test('a service with what the kernel does, and the plan alone', async () => {
  const kernel = {
    walk: () => Promise.resolve({ outcomes: [], notes: ['walked'] }),
    compare: () => Promise.resolve([]),
    dump: () => Promise.resolve(undefined),
  };
  subject = () => ({ ...CLUSTER, families: CLUSTER.families.map((family) => ({ ...family, kernel })) });
  const notes = async (query: string): Promise<readonly (string | undefined)[]> => {
    const { ports } = await answerTo<ServiceExplanation>(`/v1/explain/default/web${query}`);
    const all = ports.flatMap(({ packets }) => packets.map((packet) => packet.kernel?.notes[0]));
    return [...new Set(all)];
  };
  expect([await notes(''), await notes('?kernel=none')]).toEqual([['walked'], [undefined]]);
});

test('changes of all and of one service; without a feed they are the events, oldest first', async () => {
  expect(await answerTo('/v1/history')).toEqual([DB, WEB]);
  expect(await answerTo('/v1/history?service=default/db')).toEqual([DB]);
  expect(await answerTo('/v1/events')).toEqual([WEB, DB].map((each) => ({ kind: 'change', ...each })));
  expect(await ask('/v1/watch')).toEqual({ status: 200, text: '' });
});

describe('a stream of events', () => {
  async function watching(format = '') {
    const clock = new FakeClock();
    const feed = new WatchFeed({ clock, wallTime: () => 7 });
    const watched = node(feed);
    const stop = new AbortController();
    const open = async (): Promise<AsyncIterator<string | Uint8Array>> => {
      const answer = await watched(requestTo(`/v1/watch${format}`, { signal: stop.signal }));
      if ('body' in answer) throw new Error(String(answer.body));
      return answer.chunks[Symbol.asyncIterator]();
    };
    const events = async (kinds: string): Promise<unknown> =>
      JSON.parse((await askPage(watched, `/v1/events${kinds}`)).text);
    return { clock, feed, stop, open, events, lines: await open() };
  }

  const printed = (...events: readonly WatchEvent[]): string =>
    events.map((event) => `${JSON.stringify(event)}\n`).join('');

  test('has each event from when the client came; those of before are kept, by kind', async () => {
    const { feed, lines, events } = await watching();
    const change: WatchEvent = { kind: 'change', ...WEB };
    feed.emit(change);
    const first = lines.next();
    feed.emit(flows(2));
    feed.emit(flows(3));
    expect((await first).value).toBe(printed(flows(2), flows(3)));
    expect(await events('')).toEqual([change, flows(2), flows(3)]);
    expect(await events('?kind=conntrack')).toEqual([flows(2), flows(3)]);
    expect(await events('?kind=sync')).toEqual([]);
  });

  test('keeps the last thousand events, and few large ones', async () => {
    const { feed, events } = await watching();
    feed.emit(flows(1));
    for (let id = 1; id <= 1500; id++) feed.emit({ kind: 'change', ...record(id, 'default/web') });
    const kept = (await events('')) as readonly { readonly id?: number }[];
    expect([kept.length, kept[0]?.id, kept.at(-1)?.id]).toEqual([1000, 501, 1500]);
    const causes = ['x'.repeat(100_000)];
    for (let id = 1; id <= 20; id++) feed.emit({ kind: 'change', ...record(id, 'default/web'), causes });
    expect(await events('?kind=change')).toHaveLength(10);
  });

  test('says to a client that reads too slowly how many it lost', async () => {
    const { feed, lines } = await watching();
    const first = lines.next();
    feed.emit(flows(0));
    await first;
    for (let count = 1; count <= 1500; count++) feed.emit(flows(count));
    let text = '';
    let reads = 0;
    for (; !text.includes('"lost"'); reads++) {
      const { value } = await lines.next();
      expect(String(value).length).toBeLessThan(17_000);
      text += String(value);
      feed.emit(flows(0));
    }
    const got = text.trim().split('\n');
    expect(got).toHaveLength(1001);
    expect(JSON.parse(got.at(-1) ?? '')).toEqual({ kind: 'lost', at: 7, events: 500 + reads - 1 });
    // The same by size, whatever their number.
    const error = 'x'.repeat(300_000);
    for (let count = 0; count < 10; count++)
      feed.emit({ kind: 'refused', at: 0, family: 'IPv4', servicePort: 'a', error });
    let size = 0;
    for (text = ''; !text.includes('"lost"'); size += text.length) text = String((await lines.next()).value);
    expect(size).toBeLessThan(1_100_000);
  });

  test('is one of server-sent events where that is asked for, with heartbeats', async () => {
    const { feed, clock, lines } = await watching('?format=events');
    const first = lines.next();
    feed.emit(flows(1));
    expect((await first).value).toBe(`data: ${JSON.stringify(flows(1))}\n\n`);
    const next = lines.next();
    await clock.advance(15_000);
    expect((await next).value).toBe(':\n\n');
  });

  test('ends after the last events when the feed is closed, and with its client', async () => {
    const { feed, stop, open, lines } = await watching();
    const [first, leaving] = [lines.next(), (await open()).next()];
    expect(feed.clients).toBe(2);
    feed.emit(flows(1));
    await Promise.all([first, leaving]);
    feed.emit(flows(2));
    feed.close();
    expect((await lines.next()).value).toBe(printed(flows(2)));
    expect((await lines.next()).done).toBe(true);
    stop.abort();
    expect((await (await open()).next()).done).toBe(true);
    const other = await watching();
    const waiting = other.lines.next();
    other.stop.abort();
    expect([(await waiting).done, other.feed.clients]).toEqual([true, 0]);
  });
});
