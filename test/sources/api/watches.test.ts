/** How changes are followed, whatever goes wrong meanwhile. Each ends with the world of the server. */
import { describe, expect, it } from 'vitest';
import { type Fault, StatusError, type TestApiServer } from '../../support/apiServer/index.ts';
import { ALWAYS, answer, change, CHANGED, status } from './faults.ts';
import { type Harness, type HarnessOptions, startHarness } from './harness.ts';
import { SHOP, service, slice } from './objects.ts';

async function started(options: HarnessOptions = {}): Promise<Harness> {
  const harness = await startHarness({ objects: SHOP, ...options });
  await harness.settled();
  harness.told();
  return harness;
}

/** Without the small ones that only ask for the version. */
function listsOf({ server }: Harness): number {
  return server.log.filter(
    ({ kind, query }) => kind === 'stream' || (kind === 'list' && query['limit'] !== '1'),
  ).length;
}

function probesOf({ server }: Harness): number {
  return server.log.filter(({ path }) => path === '/readyz').length;
}

type Watch = TestApiServer['watches'] extends Set<infer W> ? W : never;

function eachWatch(act: (watch: Watch) => void): (server: TestApiServer) => void {
  return (server) => {
    for (const watch of server.watches) act(watch);
    change(server);
  };
}

/** The next watch of each resource meets this. */
function nextWatches(...faults: readonly Fault[]): (server: TestApiServer) => void {
  return (server) => {
    for (const fault of faults) server.faults.add({ on: 'watch', fault, times: 3 });
    server.dropConnections();
    change(server);
  };
}

const HALF = '{"type":"MODIFIED","object":{"kind":"Serv';

/** Whether everything is listed once more. */
const EVENTS: readonly (readonly [string, 'resumed' | 'listed', (server: TestApiServer) => void])[] = [
  ['the server ends it', 'resumed', eachWatch((watch) => watch.end())],
  ['the connection breaks', 'resumed', nextWatches()],
  [
    'it breaks in the middle of a frame',
    'resumed',
    eachWatch((watch) => {
      watch.write(HALF);
      setImmediate(() => watch.cut());
    }),
  ],
  [
    'it ends in the middle of a frame',
    'resumed',
    eachWatch((watch) => {
      watch.write(HALF);
      watch.end();
    }),
  ],
  ['a frame is not JSON', 'resumed', eachWatch((watch) => watch.write('<html>\n'))],
  ['a frame is no event', 'resumed', eachWatch((watch) => watch.write('{"kind":"Service"}\n'))],
  [
    'an event has no version',
    'resumed',
    eachWatch((watch) => watch.write('{"type":"ADDED","object":{"metadata":{"name":"x"}}}\n')),
  ],
  ['a frame never ends', 'resumed', eachWatch((watch) => watch.write('x'.repeat(17 * 1024 * 1024)))],
  [
    'an internal error is sent',
    'resumed',
    eachWatch((watch) => watch.fail(new StatusError(500, { reason: 'InternalError' }))),
  ],
  [
    'it is told to wait',
    'resumed',
    eachWatch((watch) => watch.fail(new StatusError(429, { details: { retryAfterSeconds: 3 } }))),
  ],
  ['nothing comes any more', 'resumed', eachWatch((watch) => watch.hang())],
  [
    'its requests are refused for a while',
    'resumed',
    nextWatches(
      ...[401, 403, 408, 429, 500, 502, 503, 504].map((code) => status(code)),
      { kind: 'reset' },
      { kind: 'hang' },
    ),
  ],
  [
    'the server forgets the version',
    'listed',
    (server) => {
      nextWatches()(server);
      server.compact();
    },
  ],
  [
    'the server says so in the middle',
    'listed',
    eachWatch((watch) => watch.fail(new StatusError(410, { reason: 'Expired' }))),
  ],
  ['the request is answered with 410', 'listed', nextWatches(status(410, { reason: 'Gone' }))],
  ['the server does not take the version', 'listed', nextWatches(status(400, { reason: 'BadRequest' }))],
  [
    'a watch fails at the same place three times',
    'listed',
    nextWatches(answer('garbage\n'), answer('garbage\n'), answer('garbage\n')),
  ],
];

/** In both encodings. */
describe.each([{ streamsLists: true }, { streamsLists: false, hasProtobuf: false }])(
  '$streamsLists',
  (options) => {
    it.each(EVENTS)('%s: the watch is %s', async (_, outcome, happen) => {
      const harness = await started(options);
      const before = listsOf(harness);
      happen(harness.server);
      await harness.settled();
      expect([...harness.told()].sort()).toEqual(CHANGED);
      expect(listsOf(harness) - before).toBe(outcome === 'listed' ? 3 : 0);
    });

    it('a cluster that was restored from a backup is noticed, though its watches are silent', async () => {
      const harness = await started({ ...options, revision: 5000 });
      harness.server.replace([...SHOP.slice(0, 3), service('new', { clusterIP: '10.96.0.20' })], 40);
      await harness.settled();
      const gone = ['- EndpointSlice shop/web-1', '- EndpointSlice shop/web-2', '- Service shop/db'];
      expect([...harness.told()].sort()).toEqual(['+ Service shop/new', ...gone]);
    });

    it('an event from an older history is not believed', async () => {
      const harness = await started(options);
      const old = { kind: 'Service', metadata: { ...service('web').metadata, resourceVersion: '3' } };
      for (const watch of harness.server.watchesOf('services'))
        watch.write(`${JSON.stringify({ type: 'MODIFIED', object: old })}\n`);
      change(harness.server);
      await harness.settled();
      expect([...harness.told()].sort()).toEqual(CHANGED);
    });
  },
);

describe('no storm', () => {
  it.each<[string, Fault, boolean]>([
    ['of lists, when every watch is forgotten at once', status(410, { reason: 'Expired' }), true],
    ['of watches that end as soon as they begin', { kind: 'endAtOnce' }, false],
  ])('%s', async (_, fault, endsLists) => {
    const harness = await started();
    const { server, clock } = harness;
    const [lists, watches] = [listsOf(harness), server.count('watch', 'services')];
    server.faults.add({ on: 'watch', fault, times: ALWAYS });
    const end = clock.now() + 600_000;
    server.dropConnections();
    await harness.until('ten minutes', () => {
      if (endsLists) for (const watch of server.watches) watch.end();
      return clock.now() >= end;
    });
    // 30 s at most between two, so a few dozen in ten minutes.
    expect(listsOf(harness) - lists).toBeLessThan(endsLists ? 3 * 45 : 1);
    expect(server.count('watch', 'services') - watches).toBeLessThan(45);
    server.faults.clear();
    change(server);
    await harness.settled();
  });
});

describe('quiet', () => {
  it('is watches and bookmarks only', async () => {
    const harness = await started();
    const { server } = harness;
    const before = server.log.length;
    await harness.pass(3_600_000);
    const asked = server.log.slice(before);
    expect(
      asked.every(({ kind, query }) => kind === 'watch' && query['allowWatchBookmarks'] === 'true'),
    ).toBe(true);
    // Each lasts from five to ten minutes.
    expect(asked.length).toBeGreaterThanOrEqual(3 * 5);
    expect(asked.length).toBeLessThanOrEqual(3 * 12);
    expect(harness.told()).toEqual([]);
  });

  it('keeps the version fresh by bookmarks', async () => {
    const harness = await started();
    const { server } = harness;
    const before = listsOf(harness);
    for (let index = 0; index < 50; index++) server.put(slice(`web-${index % 3}`, [`10.0.1.${index}`]));
    for (const watch of server.watches) watch.bookmark();
    await harness.settled();
    server.compact();
    nextWatches()(server);
    await harness.settled();
    expect(listsOf(harness)).toBe(before);
  });

  it('is the end of a stopped source: no request, no event, no timer', async () => {
    const harness = await started();
    await harness.source.stop();
    await harness.until('the server sees it', () => harness.server.watches.size === 0);
    change(harness.server);
    await harness.clock.advance(60_000);
    expect(harness.told()).toEqual([]);
    expect(harness.clock.pending).toBe(0);
  });
});

describe('a server that is away', () => {
  it.each([8, 20, 35, 100, 600])('for %i s is found within two seconds of its return', async (seconds) => {
    const harness = await started();
    const { server, network } = harness;
    const lists = listsOf(harness);
    await server.close();
    change(server);
    const before = network.attempts;
    await harness.pass(seconds * 1000);
    // One small request every one to two seconds, and those that wait for their turn.
    expect(network.attempts - before).toBeLessThanOrEqual(seconds + 60);
    await server.listen();
    await harness.pass(2000);
    expect([...harness.told()].sort()).toEqual(CHANGED);
    expect(listsOf(harness)).toBe(lists);
    // All is well: no more of them.
    await harness.settled();
    const probes = probesOf(harness);
    await harness.pass(120_000);
    expect(probesOf(harness)).toBe(probes);
  });

  it('and has forgotten everything is listed within two seconds more', async () => {
    const harness = await started();
    const { server } = harness;
    await server.close();
    await harness.pass(35_000);
    change(server);
    server.compact();
    server.streamsLists = false;
    await server.listen();
    await harness.pass(4000);
    expect([...harness.told()].sort()).toEqual(CHANGED);
    // A server that comes back may be a newer one: it is asked for streams again.
    server.streamsLists = true;
    const streams = server.count('stream');
    await server.close();
    await harness.pass(35_000);
    server.put(service('newer', { clusterIP: '10.96.0.21' }));
    server.compact();
    await server.listen();
    await harness.settled();
    expect(server.count('stream') - streams).toBe(3);
  });

  it('is waited for at the start', async () => {
    const harness = await startHarness({ objects: SHOP, away: true });
    await harness.pass(100_000);
    expect(harness.told()).toEqual([]);
    await harness.server.listen();
    await harness.pass(4000);
    expect(harness.told()).toContain('synced');
    expect(probesOf(harness)).toBeGreaterThan(0);
  });

  it.each<[string, Fault]>([
    ['401 while users are being loaded', status(401)],
    ['403 while roles are being loaded', status(403)],
    ['429 while it is full', status(429, { retryAfter: '1' })],
    ['500 while it is not ready', status(500)],
    ['503 from a load balancer', answer('<h1>503', 'text/html', 503)],
    ['connections without an answer', { kind: 'hang' }],
    ['connections that break', { kind: 'reset' }],
  ])('and answers with %s is found when it serves', async (_, fault) => {
    const harness = await started();
    const { server } = harness;
    await server.close();
    await harness.pass(20_000);
    server.faults.add({ on: 'any', fault, times: ALWAYS });
    await server.listen();
    await harness.pass(60_000);
    change(server);
    server.compact();
    server.faults.clear();
    const before = probesOf(harness);
    await harness.pass(6000);
    expect([...harness.told()].sort()).toEqual(CHANGED);
    expect(probesOf(harness) - before).toBeLessThanOrEqual(4);
  });

  it('every other time is no reason to ask it each time that it is back', async () => {
    const harness = await started();
    const { server } = harness;
    const fault = status(503);
    const before = server.log.filter(({ kind }) => kind !== 'other').length;
    server.dropConnections();
    for (let second = 0; second < 120; second++) {
      server.faults.clear();
      if (second % 4 < 2) server.faults.add({ on: 'any', fault, times: ALWAYS });
      else server.faults.add({ on: 'watch', fault, times: ALWAYS });
      await harness.pass(1000);
    }
    const asked = server.log.filter(({ kind }) => kind !== 'other').length - before;
    // A return in ten seconds at most, and what a back-off that begins anew allows until the next.
    expect(asked).toBeLessThanOrEqual(3 * 12 * 4);
  });
});

describe('objects', () => {
  it('that are odd, but taken by the API server, are followed', async () => {
    const { server, settled, told } = await started();
    const given = slice('web-9', ['10.0.9.1']);
    const named = { ...given.metadata, labels: { 'kubernetes.io/service-name': 'Web_2.x' } };
    const hints = { forZones: [{ name: '' }] };
    for (const [object, expected] of [
      [given, '+ EndpointSlice shop/web-9'],
      // No service can have this name: the slice leaves its service.
      [{ ...given, metadata: named }, '- EndpointSlice shop/web-9'],
      [{ ...given, endpoints: [{ addresses: ['10.0.9.2'], hints }] }, '+ EndpointSlice shop/web-9'],
    ] as const) {
      server.put(object);
      await settled();
      expect(told()).toEqual([expected]);
    }
  });

  it('that are bad are reported once; the last good version stays', async () => {
    const harness = await started();
    const { server } = harness;
    const bad = service('web', { clusterIP: '10.96.0.10', ports: 'http' });
    server.put(bad);
    server.put({ ...bad, status: { loadBalancer: {}, more: 1 } });
    server.put(service('worse', { clusterIP: 'ten' }));
    await harness.pass(60_000);
    server.put(service('db', { clusterIP: '10.96.0.99' }));
    await harness.pass(1000);
    expect(harness.told()).toEqual([
      'API server: error: Service shop/web: spec.ports is "http"; its last good version stays in force (expected a list)',
      'API server: error: Service shop/worse: spec.clusterIP "ten" is not an IP address; it is not served (expected an IP address or None)',
      '~ Service shop/db',
    ]);
    expect(harness.world.has('Service shop/web')).toBe(true);
    server.delete('Service', 'shop/web');
    server.delete('Service', 'shop/worse');
    await harness.settled();
    expect(harness.told()).toEqual(['- Service shop/web']);
  });
});

it('a cluster where lists are forbidden is followed by watches alone', async () => {
  const harness = await started();
  const { server } = harness;
  const before = listsOf(harness);
  server.faults.add({ on: 'list', fault: status(403, { reason: 'Forbidden' }), times: ALWAYS });
  // Silence, so that the version is in doubt, and a list would say what it is.
  for (const watch of server.watches) watch.hang();
  await harness.pass(600_000);
  change(server);
  await harness.settled();
  expect([...harness.told()].sort()).toEqual(CHANGED);
  expect(listsOf(harness)).toBe(before);
  expect(server.count('list')).toBeGreaterThan(0);
});

it('a listener that throws is not taken for a fault of the server', async () => {
  const handlers = process.listeners('unhandledRejection');
  process.removeAllListeners('unhandledRejection');
  const thrown = new Promise<unknown>((resolve) => {
    process.once('unhandledRejection', resolve);
  });
  try {
    const harness = await startHarness({
      objects: SHOP,
      onEvent: () => {
        throw new Error('a bug');
      },
    });
    await harness.pass(60_000);
    expect(String(await thrown)).toContain('a listener failed: a bug');
    expect(harness.diagnostics.filter(({ kind }) => kind === 'backingOff')).toEqual([]);
    await expect(harness.source.stop()).rejects.toThrow('a bug');
  } finally {
    for (const handler of handlers) process.on('unhandledRejection', handler);
  }
});
