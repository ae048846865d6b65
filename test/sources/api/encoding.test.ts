/** Which encoding is asked for, and what becomes of answers in another one. */
import { describe, expect, it } from 'vitest';
import { acceptHeader, encodingOf, wantedEncoding } from '../../../src/sources/api/encoding.ts';
import { StatusError } from '../../support/apiServer/index.ts';
import { startHarness } from './harness.ts';
import { SHOP } from './objects.ts';

const PROTOBUF = 'application/vnd.kubernetes.protobuf';

describe('the settings', () => {
  it.each([
    [PROTOBUF, '', 'protobuf'],
    ['application/json', '', 'json'],
    ['', '', 'json'],
    ['foo', '', 'json'],
    [PROTOBUF, 'application/json', 'json'],
    ['application/json', `${PROTOBUF},application/json`, 'protobuf'],
    ['application/json', `application/json, ${PROTOBUF}`, 'protobuf'],
    ['application/json', `application/json, ${PROTOBUF};q=0.9`, 'json'],
    ['application/json', ` ${PROTOBUF.toUpperCase()} ;q=1`, 'protobuf'],
    [PROTOBUF, `${PROTOBUF};q=0`, 'json'],
    [PROTOBUF, `${PROTOBUF};q=x`, 'json'],
  ])('contentType %j, acceptContentTypes %j: %s', (contentType, accept, expected) => {
    expect(wantedEncoding(contentType, accept)).toBe(expected);
  });

  it('become the header Accept, with JSON for every server', () => {
    expect(acceptHeader('protobuf')).toBe(`${PROTOBUF}, application/json`);
    expect(acceptHeader('json')).toBe('application/json');
  });
});

it.each([
  [PROTOBUF, 'protobuf'],
  [`${PROTOBUF};stream=watch`, 'protobuf'],
  ['application/json', 'json'],
  ['application/json;charset=utf-8', 'json'],
  ['text/html', 'json'],
  [undefined, 'json'],
])('an answer with content type %s is read as %s', (type, expected) => {
  expect(encodingOf(type)).toBe(expected);
});

const acceptOf = (harness: Awaited<ReturnType<typeof startHarness>>): ReadonlySet<string | undefined> =>
  new Set(harness.server.log.filter(({ kind }) => kind !== 'other').map(({ headers }) => headers.accept));

describe('a server', () => {
  it.each([{ streamsLists: true }, { streamsLists: false }])(
    'with protobuf is read in it (streams lists: $streamsLists)',
    async ({ streamsLists }) => {
      const harness = await startHarness({ objects: SHOP, streamsLists, withServiceCIDRs: true });
      await harness.settled();
      expect(acceptOf(harness)).toEqual(new Set([`${PROTOBUF}, application/json`]));
      harness.server.compact();
      harness.server.dropConnections();
      await harness.settled();
    },
  );

  it('without protobuf answers JSON, which is read', async () => {
    const harness = await startHarness({ objects: SHOP, hasProtobuf: false });
    await harness.settled();
    expect(acceptOf(harness)).toEqual(new Set([`${PROTOBUF}, application/json`]));
  });

  it.each(['list', 'stream', 'watch'] as const)(
    'that answers 406 is asked for JSON at once (%s)',
    async (on) => {
      const harness = await startHarness({ objects: SHOP, streamsLists: on === 'stream' });
      const error = new StatusError(406, { reason: 'NotAcceptable', details: {} });
      harness.server.faults.add({ on, fault: { kind: 'status', error } });
      await harness.settled();
      expect(acceptOf(harness)).toContain('application/json');
      expect(harness.diagnostics.filter(({ kind }) => kind === 'backingOff')).toEqual([]);
    },
  );

  it('that is replaced by one without protobuf is read in JSON from then on', async () => {
    const harness = await startHarness({ objects: SHOP });
    await harness.settled();
    harness.server.hasProtobuf = false;
    harness.server.delete('Service', 'shop/web');
    harness.server.dropConnections();
    await harness.settled();
    harness.server.put(...SHOP);
    await harness.settled();
    expect(harness.told()).toContain('- Service shop/web');
  });

  it.each([
    ['cut off', { kind: 'cut', afterBytes: 40, clean: true }],
    ['cut off in the first bytes', { kind: 'cut', afterBytes: 3, clean: true }],
    ['of other bytes', { kind: 'answer', code: 200, contentType: PROTOBUF, body: '{"kind":"ServiceList"}' }],
    ['of nothing', { kind: 'answer', code: 200, contentType: PROTOBUF, body: '' }],
    [
      'that is JSON by its header',
      { kind: 'answer', code: 200, contentType: 'application/json', body: 'k8s\0' },
    ],
    ['that is a page', { kind: 'answer', code: 200, contentType: 'text/html', body: '<html>' }],
  ] as const)('whose list is one %s is asked again', async (_, fault) => {
    const harness = await startHarness({ objects: SHOP, streamsLists: false });
    harness.server.faults.add({ on: 'list', resource: 'services', fault, times: 2 });
    await harness.settled();
    const failures = harness.diagnostics.flatMap((each) =>
      each.kind === 'backingOff' ? each.failure.kind : [],
    );
    expect(failures).toEqual(['malformed', 'malformed']);
  });
});
