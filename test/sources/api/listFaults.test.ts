/** What goes wrong while everything is listed. Each ends with the world of the server, told once. */
import { describe, expect, it } from 'vitest';
import { StatusError } from '../../support/apiServer/index.ts';
import type { Fault } from '../../support/apiServer/index.ts';
import { statusObject } from '../../support/apiServer/status.ts';
import { startHarness } from './harness.ts';
import { SHOP, service, slice } from './objects.ts';

const TOLD = [
  '+ EndpointSlice shop/web-1',
  '+ EndpointSlice shop/web-2',
  '+ Node node1',
  '+ Service shop/db',
  '+ Service shop/web',
  'synced',
];

const BUSY = new StatusError(429, {
  reason: 'TooManyRequests',
  message: 'too many requests',
  retryAfter: '7',
});

const FAULTS: readonly (readonly [string, Fault])[] = [
  ['too many requests', { kind: 'status', error: BUSY }],
  ['an internal error', { kind: 'status', error: new StatusError(500, { reason: 'InternalError' }) }],
  ['a server that starts', { kind: 'status', error: new StatusError(503, { message: 'starting' }) }],
  ['no rights', { kind: 'status', error: new StatusError(403, { reason: 'Forbidden' }) }],
  [
    'a resource that is not there yet',
    { kind: 'status', error: new StatusError(404, { reason: 'NotFound' }) },
  ],
  ['a reset connection', { kind: 'reset' }],
  ['no answer', { kind: 'hang' }],
  [
    'an error that is not a Status',
    { kind: 'answer', code: 502, contentType: 'text/html', body: '<h1>Bad gateway' },
  ],
  [
    'an answer in HTML',
    { kind: 'answer', code: 200, contentType: 'text/html', body: '<h1>Please log in</h1>' },
  ],
  ['an empty answer', { kind: 'answer', code: 200, contentType: 'application/json', body: '' }],
  ['an answer that is no list', { kind: 'answer', code: 200, contentType: 'application/json', body: '{}' }],
  ['a list of something else', listAnswer({ kind: 'PodList', items: [] })],
  ['a list without items', listAnswer({ kind: 'ServiceList' })],
  ['a list without a version', listAnswer({ kind: 'ServiceList', metadata: {}, items: [] })],
];

function inStream(error: StatusError): Fault {
  const object = statusObject(error.code, error.options);
  const body = `${JSON.stringify({ type: 'ERROR', object })}\n`;
  return { kind: 'answer', code: 200, contentType: 'application/json', body };
}

function listAnswer(list: Readonly<Record<string, unknown>>): Fault {
  const body = JSON.stringify({ metadata: { resourceVersion: '7' }, ...list });
  return { kind: 'answer', code: 200, contentType: 'application/json', body };
}

describe.each([{ streamsLists: true }, { streamsLists: false }])(
  'streams lists: $streamsLists',
  ({ streamsLists }) => {
    it.each(FAULTS)('%s, at the start', async (_, fault) => {
      const harness = await startHarness({ objects: SHOP, streamsLists });
      harness.server.faults.add({ on: streamsLists ? 'stream' : 'list', fault, times: 6 });
      harness.server.faults.add({ on: 'list', fault, times: 3 });
      await harness.settled();
      expect([...harness.told()].sort()).toEqual(TOLD);
      expect(harness.diagnostics.some(({ kind }) => kind === 'backingOff')).toBe(true);
    });

    it.each(FAULTS)('%s, when listing again', async (_, fault) => {
      const harness = await startHarness({ objects: SHOP, streamsLists });
      const { server } = harness;
      await harness.settled();
      harness.told();
      server.faults.add({ on: streamsLists ? 'stream' : 'list', fault, times: 3 });
      server.faults.add({ on: 'list', fault, times: 2 });
      server.dropConnections();
      server.put(service('new', { clusterIP: '10.96.0.20' }), slice('web-1', ['10.0.0.7']));
      server.delete('Service', 'shop/db');
      server.compact();
      await harness.settled();
      expect([...harness.told()].sort()).toEqual([
        '+ Service shop/new',
        '- Service shop/db',
        '~ EndpointSlice shop/web-1',
      ]);
    });
  },
);

describe('a server that is busy', () => {
  it.each(['list', 'stream', 'watch'] as const)('is given the time that it asks for (%s)', async (on) => {
    const harness = await startHarness({ objects: SHOP, streamsLists: on === 'stream' });
    harness.server.faults.add({ on, fault: { kind: 'status', error: BUSY }, times: 3 });
    await harness.settled();
    harness.server.dropConnections();
    await harness.settled();
    const waits = harness.diagnostics.flatMap((each) =>
      each.kind === 'backingOff' && each.failure.kind === 'busy' ? each.delayMs : [],
    );
    expect(waits).toEqual([7000, 7000, 7000]);
  });
});

describe('a server that asks for a month', () => {
  it.each([
    ['in the header', new StatusError(429, { retryAfter: '3000000' })],
    ['in the Status', new StatusError(429, { details: { retryAfterSeconds: 3_000_000 } })],
    ['in the Status, beyond numbers', new StatusError(503, { details: { retryAfterSeconds: 1e300 } })],
  ])('is given a minute (%s)', async (_, error) => {
    const harness = await startHarness({ objects: SHOP, streamsLists: false });
    harness.server.faults.add({ on: 'list', fault: { kind: 'status', error }, times: 3 });
    await harness.settled();
    const waits = harness.diagnostics.flatMap((each) => (each.kind === 'backingOff' ? each.delayMs : []));
    expect(waits).toEqual([60_000, 60_000, 60_000]);
  });
});

describe('pages', () => {
  const MANY = Array.from({ length: 1200 }, (_, index) =>
    service(`s${index}`, { clusterIP: `10.96.${index >> 8}.${index & 255}` }),
  );

  it('are read to the last', async () => {
    // The first list comes from the cache, which has no pages; one that must be the latest has.
    const harness = await startHarness({ objects: [...SHOP, ...MANY], streamsLists: false, revision: 5000 });
    await harness.settled();
    harness.server.replace([...SHOP, ...MANY.slice(1)], 50);
    await harness.settled();
    const pages = harness.server.log.filter(
      ({ query, resource }) => resource === 'services' && query['continue'],
    );
    expect(pages).toHaveLength(2);
    expect(pages.every(({ query }) => query['limit'] === '500' && !('resourceVersion' in query))).toBe(true);
    expect(harness.told().filter((line) => line.startsWith('-'))).toEqual(['- Service shop/s0']);
  });

  it('that are forgotten by the server are replaced by everything at once', async () => {
    const harness = await startHarness({ objects: [...SHOP, ...MANY], streamsLists: false, revision: 5000 });
    const { server } = harness;
    await harness.settled();
    const before = server.count('list', 'services');
    server.faults.add({
      on: 'list',
      resource: 'services',
      after: 2, // the question for the version, and the first page
      fault: { kind: 'do', action: () => server.compact() },
    });
    server.replace([...SHOP, ...MANY.slice(10)], 50);
    await harness.settled();
    const lists = server.log
      .filter(({ kind, resource }) => kind === 'list' && resource === 'services')
      .slice(before);
    const asked = lists.map(
      ({ query }) => `${query['limit'] ?? 'all'}${query['continue'] ? ' continued' : ''}`,
    );
    // what is the version now?; the first page; a page that is gone; everything
    expect(asked).toEqual(['1', '500', '500 continued', 'all']);
  });

  it('whose token the server does not know are replaced by everything at once', async () => {
    const harness = await startHarness({ objects: [...SHOP, ...MANY], streamsLists: false, revision: 5000 });
    const { server } = harness;
    await harness.settled();
    harness.told();
    const error = new StatusError(400, { reason: 'BadRequest', message: 'invalid continue token' });
    const after = 2; // the question for the version, and the first page
    server.faults.add({ on: 'list', resource: 'services', after, fault: { kind: 'status', error } });
    server.replace([...SHOP, ...MANY.slice(10)], 50);
    await harness.settled();
    expect(harness.told()).toHaveLength(10);
  });

  it.each([{ clean: true }, { clean: false }])(
    'that break off (clean: $clean) do not delete what was not read',
    async ({ clean }) => {
      const harness = await startHarness({ objects: [...SHOP, ...MANY], streamsLists: false });
      const { server } = harness;
      await harness.settled();
      harness.told();
      server.faults.add({
        on: 'list',
        resource: 'services',
        fault: { kind: 'cut', afterBytes: 40_000, clean },
        times: 2,
      });
      server.dropConnections();
      server.put(service('new', { clusterIP: '10.96.0.20' }));
      server.compact();
      await harness.settled();
      expect(harness.told()).toEqual(['+ Service shop/new']);
    },
  );

  it('may come a few bytes at a time', async () => {
    const harness = await startHarness({ objects: SHOP, streamsLists: false });
    harness.server.faults.add({ on: 'list', fault: { kind: 'slow', bytes: 7 }, times: 3 });
    await harness.settled();
    expect([...harness.told()].sort()).toEqual(TOLD);
  });
});

describe('a streamed list', () => {
  it.each([
    ['422', new StatusError(422, { reason: 'Invalid', message: 'sendInitialEvents is forbidden' })],
    ['400', new StatusError(400, { reason: 'BadRequest' })],
    ['403', new StatusError(403, { reason: 'Forbidden' })],
  ])('that is refused with %s is not asked for again', async (_, error) => {
    const harness = await startHarness({ objects: SHOP });
    const { server, diagnostics } = harness;
    server.faults.add({ on: 'stream', fault: { kind: 'status', error }, times: 3 });
    await harness.settled();
    server.dropConnections();
    server.put(service('new', { clusterIP: '10.96.0.20' }));
    server.compact();
    await harness.settled();
    expect(server.count('stream')).toBe(3);
    expect(diagnostics.filter(({ kind }) => kind === 'streamingRefused')).toHaveLength(3);
  });

  it.each<[string, Fault]>([
    ['an error in the stream', inStream(new StatusError(500, { reason: 'InternalError' }))],
    ['a version that is gone', inStream(new StatusError(410, { reason: 'Expired' }))],
    ['a 500', { kind: 'status', error: new StatusError(500, { reason: 'InternalError' }) }],
    ['a 401', { kind: 'status', error: new StatusError(401, { reason: 'Unauthorized' }) }],
    ['a 404', { kind: 'status', error: new StatusError(404, { reason: 'NotFound' }) }],
    ['a 504', { kind: 'status', error: new StatusError(504, { reason: 'Timeout' }) }],
    ['a broken connection', { kind: 'reset' }],
    ['no answer', { kind: 'hang' }],
    ['HTML', { kind: 'answer', code: 200, contentType: 'text/html', body: '<h1>Log in\n' }],
    ['an early end', { kind: 'endAtOnce' }],
  ])('that meets %s, always, is followed at once by an ordinary list', async (_, fault) => {
    const harness = await startHarness({ objects: SHOP });
    const { server, diagnostics } = harness;
    server.faults.add({ on: 'stream', fault, times: Number.POSITIVE_INFINITY });
    await harness.settled();
    expect([...harness.told()].sort()).toEqual(TOLD);
    expect(diagnostics.filter(({ kind }) => kind === 'backingOff')).toEqual([]);
    // And again, when the watch is lost.
    server.dropConnections();
    server.put(service('new', { clusterIP: '10.96.0.20' }));
    server.compact();
    await harness.settled();
    expect(harness.told()).toEqual(['+ Service shop/new']);
  });

  it('that meets a server which is too busy is followed by an ordinary one when the time is over', async () => {
    const harness = await startHarness({ objects: SHOP });
    const { server } = harness;
    const fault = { kind: 'status', error: BUSY } as const;
    server.faults.add({ on: 'stream', fault, times: Number.POSITIVE_INFINITY });
    await harness.settled();
    expect([...harness.told()].sort()).toEqual(TOLD);
    expect(server.count('stream')).toBe(3);
  });

  it('that ends without its bookmark is not trusted', async () => {
    const harness = await startHarness({ objects: SHOP });
    harness.server.faults.add({ on: 'stream', fault: { kind: 'endAtOnce' }, times: 3 });
    await harness.settled();
    expect([...harness.told()].sort()).toEqual(TOLD);
    expect(harness.server.count('list')).toBe(3);
  });

  it('starts again from nothing when its version is too old for the server', async () => {
    const harness = await startHarness({ objects: SHOP, revision: 5000 });
    await harness.settled();
    harness.told();
    harness.server.replace([...SHOP, service('new', { clusterIP: '10.96.0.20' })], 50);
    await harness.settled();
    expect(harness.told()).toEqual(['+ Service shop/new']);
  });
});
