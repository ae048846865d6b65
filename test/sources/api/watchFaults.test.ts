/** What goes wrong while changes are watched. Each ends with the world of the server. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { ApiClient } from '../../../src/sources/api/client.ts';
import { Interner } from '../../../src/sources/api/interner.ts';
import { ResourceStore } from '../../../src/sources/api/store.ts';
import { Reflector } from '../../../src/sources/api/reflector.ts';
import { services } from '../../../src/sources/api/resources.ts';
import { ServerMonitor } from '../../../src/sources/api/serverMonitor.ts';
import { StatusError, TestApiServer } from '../../support/apiServer/index.ts';
import { FakeClock } from '../../time/fakeClock.ts';
import { type Harness, openAccess, startHarness } from './harness.ts';
import { SHOP, service, slice } from './objects.ts';

async function started(streamsLists = true): Promise<Harness> {
  const harness = await startHarness({ objects: SHOP, streamsLists });
  await harness.settled();
  harness.told();
  return harness;
}

function change(server: TestApiServer): void {
  server.put(service('new', { clusterIP: '10.96.0.20' }), slice('web-1', ['10.0.0.7']));
  server.delete('Service', 'shop/db');
}

const CHANGED = ['+ Service shop/new', '- Service shop/db', '~ EndpointSlice shop/web-1'];

/** Without the small ones that only ask for the version. */
function listsOf({ server }: Harness): number {
  return server.log.filter(
    ({ kind, query }) => kind === 'stream' || (kind === 'list' && query['limit'] !== '1'),
  ).length;
}

function forEachWatch(
  server: TestApiServer,
  act: (watch: ReturnType<TestApiServer['watchesOf']>[number]) => void,
): void {
  for (const watch of server.watches) act(watch);
}

/** The watch is taken up where it was; nothing is listed again. */
const RESUMED: readonly (readonly [string, (server: TestApiServer) => void])[] = [
  ['the server ends it', (server) => forEachWatch(server, (watch) => watch.end())],
  ['the connection breaks', (server) => server.dropConnections()],
  [
    'it breaks in the middle of a frame',
    (server) =>
      forEachWatch(server, (watch) => {
        watch.write('{"type":"MODIFIED","object":{"kind":"Serv');
        setImmediate(() => watch.cut());
      }),
  ],
  [
    'it ends in the middle of a frame',
    (server) =>
      forEachWatch(server, (watch) => {
        watch.write('{"type":"MODIFIED","object":{"kind":"Serv');
        watch.end();
      }),
  ],
  ['a frame is not JSON', (server) => forEachWatch(server, (watch) => watch.write('<html>\n'))],
  ['a frame is no event', (server) => forEachWatch(server, (watch) => watch.write('{"kind":"Service"}\n'))],
  [
    'an event has no version',
    (server) =>
      forEachWatch(server, (watch) => watch.write('{"type":"ADDED","object":{"metadata":{"name":"x"}}}\n')),
  ],
  [
    'a frame never ends',
    (server) => forEachWatch(server, (watch) => watch.write('x'.repeat(17 * 1024 * 1024))),
  ],
  [
    'an internal error is sent',
    (server) =>
      forEachWatch(server, (watch) => watch.fail(new StatusError(500, { reason: 'InternalError' }))),
  ],
  [
    'it is told to wait',
    (server) =>
      forEachWatch(server, (watch) =>
        watch.fail(new StatusError(429, { reason: 'TooManyRequests', details: { retryAfterSeconds: 3 } })),
      ),
  ],
  ['nothing comes any more', (server) => forEachWatch(server, (watch) => watch.hang())],
];

describe('a watch is resumed when', () => {
  it.each(RESUMED)('%s', async (_, fault) => {
    const harness = await started();
    const before = listsOf(harness);
    fault(harness.server);
    change(harness.server);
    await harness.settled();
    expect([...harness.told()].sort()).toEqual(CHANGED);
    expect(listsOf(harness)).toBe(before);
  });

  it('the server is away for a while', async () => {
    const harness = await started();
    const { server } = harness;
    const before = listsOf(harness);
    await server.close();
    change(server);
    const tries = (): number => harness.diagnostics.filter(({ kind }) => kind === 'backingOff').length;
    await harness.until('several tries', () => tries() > 12);
    await server.listen();
    await harness.settled();
    expect([...harness.told()].sort()).toEqual(CHANGED);
    expect(listsOf(harness)).toBe(before);
  });

  it('its requests are refused for a while', async () => {
    const harness = await started();
    const { server } = harness;
    const before = listsOf(harness);
    const statuses = [401, 403, 408, 429, 500, 502, 503, 504];
    for (const code of statuses) {
      server.faults.add({ on: 'watch', fault: { kind: 'status', error: new StatusError(code) }, times: 3 });
    }
    server.faults.add({ on: 'watch', fault: { kind: 'reset' }, times: 3 });
    server.faults.add({ on: 'watch', fault: { kind: 'hang' }, times: 3 });
    server.dropConnections();
    change(server);
    await harness.settled();
    expect([...harness.told()].sort()).toEqual(CHANGED);
    expect(listsOf(harness)).toBe(before);
  });
});

/** What happened in between is lost; everything is listed once more, and only differences are told. */
const LISTED_AGAIN: readonly (readonly [string, (server: TestApiServer) => void])[] = [
  [
    'the server has forgotten the version',
    (server) => {
      server.dropConnections();
      change(server);
      server.compact();
    },
  ],
  [
    'the server says so in the middle',
    (server) => {
      forEachWatch(server, (watch) => watch.fail(new StatusError(410, { reason: 'Expired' })));
      change(server);
    },
  ],
  [
    'the request is answered with 410',
    (server) => {
      const error = new StatusError(410, { reason: 'Gone' });
      server.faults.add({ on: 'watch', fault: { kind: 'status', error }, times: 3 });
      server.dropConnections();
      change(server);
    },
  ],
  [
    'the server does not take the version',
    (server) => {
      const error = new StatusError(400, { reason: 'BadRequest', message: 'Invalid value: "x"' });
      server.faults.add({ on: 'watch', fault: { kind: 'status', error }, times: 3 });
      server.dropConnections();
      change(server);
    },
  ],
  [
    'a watch fails at the same place three times',
    (server) => {
      const fail = { kind: 'answer', code: 200, contentType: 'application/json', body: 'garbage\n' } as const;
      server.faults.add({ on: 'watch', fault: fail, times: 9 });
      server.dropConnections();
      change(server);
    },
  ],
];

describe.each([{ streamsLists: true }, { streamsLists: false }])(
  'streams lists: $streamsLists',
  ({ streamsLists }) => {
    it.each(LISTED_AGAIN)('all is listed once more when %s', async (_, fault) => {
      const harness = await started(streamsLists);
      const before = listsOf(harness);
      fault(harness.server);
      await harness.settled();
      expect([...harness.told()].sort()).toEqual(CHANGED);
      expect(listsOf(harness)).toBe(before + 3);
    });

    it('a cluster that was restored from a backup is noticed, though its watches are silent', async () => {
      const harness = await startHarness({ objects: SHOP, streamsLists, revision: 5000 });
      await harness.settled();
      harness.told();
      harness.server.replace([...SHOP.slice(0, 3), service('new', { clusterIP: '10.96.0.20' })], 40);
      await harness.until('it is noticed', () => harness.world.has('Service shop/new'));
      await harness.settled();
      expect([...harness.told()].sort()).toEqual([
        '+ Service shop/new',
        '- EndpointSlice shop/web-1',
        '- EndpointSlice shop/web-2',
        '- Service shop/db',
      ]);
    });

    it('an event from an older history is not believed', async () => {
      const harness = await started(streamsLists);
      const old = { kind: 'Service', metadata: { ...service('web').metadata, resourceVersion: '3' } };
      for (const watch of harness.server.watchesOf('services')) {
        watch.write(`${JSON.stringify({ type: 'MODIFIED', object: old })}\n`);
      }
      change(harness.server);
      await harness.settled();
      expect([...harness.told()].sort()).toEqual(CHANGED);
    });
  },
);

describe('no storm', () => {
  it('of lists, when every watch is forgotten at once', async () => {
    const harness = await started();
    const { server } = harness;
    const before = server.count('stream', 'services');
    const error = new StatusError(410, { reason: 'Expired' });
    server.faults.add({ on: 'watch', fault: { kind: 'status', error }, times: Number.POSITIVE_INFINITY });
    const start = harness.clock.now();
    server.dropConnections();
    await harness.until('ten minutes', () => {
      for (const watch of server.watchesOf('services')) watch.end();
      return harness.clock.now() - start > 600_000;
    });
    // 30 s at most between two, so a few dozen in ten minutes.
    expect(server.count('stream', 'services') - before).toBeLessThan(45);
    server.faults.clear();
    await harness.settled();
  });

  it('of watches that end as soon as they begin', async () => {
    const harness = await started();
    const { server } = harness;
    const before = server.count('watch', 'services');
    const lists = listsOf(harness);
    server.faults.add({ on: 'watch', fault: { kind: 'endAtOnce' }, times: Number.POSITIVE_INFINITY });
    const start = harness.clock.now();
    server.dropConnections();
    await harness.until('ten minutes', () => harness.clock.now() - start > 600_000);
    expect(server.count('watch', 'services') - before).toBeLessThan(45);
    expect(listsOf(harness)).toBe(lists);
    server.faults.clear();
    change(server);
    await harness.settled();
  });
});

describe('an hour of quiet', () => {
  it('is watches and bookmarks only', async () => {
    const harness = await started();
    const { server, clock } = harness;
    const before = listsOf(harness);
    const start = clock.now();
    await harness.until('an hour', () => clock.now() - start > 3_600_000, 5000);
    expect(listsOf(harness)).toBe(before);
    const watches = server.log.filter(({ kind, resource }) => kind === 'watch' && resource === 'services');
    expect(watches.length).toBeGreaterThanOrEqual(5);
    expect(watches.length).toBeLessThanOrEqual(13);
    expect(watches.every(({ query }) => query['allowWatchBookmarks'] === 'true')).toBe(true);
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
    server.dropConnections();
    change(server);
    await harness.settled();
    expect(listsOf(harness)).toBe(before);
  });
});

describe('odd objects that the API server accepts', () => {
  it('are followed: a slice whose label names no possible service leaves its service', async () => {
    const harness = await started();
    const { server } = harness;
    const given = slice('web-9', ['10.0.9.1']);
    server.put(given);
    await harness.settled();
    expect(harness.told()).toEqual(['+ EndpointSlice shop/web-9']);
    const labels = { 'kubernetes.io/service-name': 'Web_2.x' };
    server.put({ ...given, metadata: { ...given.metadata, labels } });
    await harness.settled();
    expect(harness.told()).toEqual(['- EndpointSlice shop/web-9']);
    const hints = { forZones: [{ name: '' }] };
    server.put({ ...given, endpoints: [{ addresses: ['10.0.9.2'], hints }] });
    await harness.settled();
    expect(harness.told()).toEqual(['+ EndpointSlice shop/web-9']);
  });
});

describe('bad objects', () => {
  it('are reported once; the last good version stays', async () => {
    const harness = await started();
    const { server } = harness;
    const bad = service('web', { clusterIP: '10.96.0.10', ports: 'http' });
    server.put(bad);
    server.put({ ...bad, status: { loadBalancer: {}, more: 1 } });
    server.put(service('worse', { clusterIP: 'ten' }));
    const lines: string[] = [];
    await harness.until('both are reported', () => lines.push(...harness.told()) >= 2);
    server.put(service('db', { clusterIP: '10.96.0.99' }));
    await harness.until('the last change is told', () => lines.push(...harness.told()) >= 3);
    expect(lines).toEqual([
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

describe('a cluster where lists are forbidden', () => {
  it('is followed by watches alone', async () => {
    const harness = await started();
    const { server, clock } = harness;
    const before = listsOf(harness);
    const error = new StatusError(403, { reason: 'Forbidden' });
    server.faults.add({ on: 'list', fault: { kind: 'status', error }, times: Number.POSITIVE_INFINITY });
    // Silence, so that the version is in doubt, and a list would say what it is.
    forEachWatch(server, (watch) => watch.hang());
    const start = clock.now();
    await harness.until('ten minutes', () => clock.now() - start > 600_000);
    change(server);
    await harness.settled();
    expect([...harness.told()].sort()).toEqual(CHANGED);
    expect(listsOf(harness)).toBe(before);
    expect(server.count('list')).toBeGreaterThan(0);
  });
});

describe('a listener that throws', () => {
  it('is not taken for a fault of the server', async () => {
    const server = await TestApiServer.start();
    server.put(...SHOP);
    const clock = new FakeClock();
    const client = new ApiClient({ access: openAccess(server.url), clock });
    onTestFinished(async () => {
      await client.close();
      await server.close();
    });
    const resource = services(new Interner());
    const emit = (): void => {
      throw new Error('a bug');
    };
    const store = new ResourceStore({
      kind: resource.kind,
      emit,
      report: () => undefined,
    });
    const reflector = new Reflector({
      client,
      resource,
      store,
      clock,
      random: () => 0,
      server: new ServerMonitor({ clock, random: () => 0, probe: () => Promise.resolve('ready') }),
      onDiagnostic: () => undefined,
      onListed: () => undefined,
    });
    await expect(reflector.run(new AbortController().signal)).rejects.toThrow('a listener failed: a bug');
    expect(server.log).toHaveLength(1);
  });
});

describe('stop', () => {
  it('ends every request, and nothing is told afterwards', async () => {
    const harness = await started();
    const { server, source } = harness;
    await source.stop();
    await harness.until('the server sees it', () => server.watches.size === 0);
    change(server);
    await harness.clock.advance(60_000);
    expect(harness.told()).toEqual([]);
    expect(harness.clock.pending).toBe(0);
  });
});
