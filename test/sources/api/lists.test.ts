/** How everything is listed, whatever goes wrong meanwhile. Each ends with the world of the server, emitted once. */
import { describe, expect, it } from 'vitest';
import type { Fault, RawObject, RequestKind, StreamingLists } from '../../support/apiServer/index.ts';
import { ALWAYS, answer, AT_FIRST, BUSY, change, CHANGED, inStream, PROTOBUF, status } from './faults.ts';
import { type Harness, type HarnessOptions, startHarness } from './harness.ts';
import { node, SHOP, service, serviceCidr, slice } from './objects.ts';

const STREAMS: readonly StreamingLists[] = [true, false, 'noWatchProgress'];

async function settled(options: HarnessOptions = {}): Promise<Harness> {
  const harness = await startHarness({ objects: SHOP, ...options });
  await harness.settled();
  return harness;
}

/** All that is known is listed again, and only what changed meanwhile is emitted. */
async function listAgain({ server, settled: isSettled, told }: Harness): Promise<readonly string[]> {
  told();
  server.dropConnections();
  change(server);
  server.compact();
  await isSettled();
  return [...told()].sort();
}

function backOffs({ diagnostics }: Harness): readonly (readonly [kind: string, delayMs: number])[] {
  return diagnostics.flatMap((each) =>
    each.kind === 'backingOff' ? [[each.failure.kind, each.delayMs] as const] : [],
  );
}

describe.each(STREAMS)('a cluster (streaming lists: %s)', (streamsLists) => {
  it('is emitted once, then synced, then followed', async () => {
    const harness = await settled({ streamsLists });
    const { server, told } = harness;
    const lines = told();
    expect([...lines].sort()).toEqual(AT_FIRST);
    expect(lines.at(-1)).toBe('synced');
    expect(server.count('list')).toBe(streamsLists === true ? 0 : 3);
    expect(server.count('stream')).toBe(3);
    server.put(service('new', { clusterIP: '10.96.0.13' }), slice('web-1', ['10.0.0.9']));
    server.put(node('node1', 'zone-b'), node('node2', 'zone-c'), slice('web-2', ['10.0.0.3']));
    server.delete('Service', 'shop/db');
    // It comes into, or leaves, what the selectors let through.
    server.put(service('headless', { clusterIP: '10.96.0.14' }), service('web', { clusterIP: 'None' }));
    await harness.settled();
    expect([...told()].sort()).toEqual([
      '+ Service shop/headless',
      '+ Service shop/new',
      '- Service shop/db',
      '- Service shop/web',
      '~ EndpointSlice shop/web-1',
      '~ Node node1',
    ]);
  });
});

const FAULTS: readonly (readonly [string, Fault])[] = [
  ['too many requests', BUSY],
  ['an internal error', status(500, { reason: 'InternalError' })],
  ['a server that starts', status(503, { message: 'starting' })],
  ['no rights', status(403, { reason: 'Forbidden' })],
  ['a resource that is not there yet', status(404, { reason: 'NotFound' })],
  ['a reset connection', { kind: 'reset' }],
  ['no answer', { kind: 'hang' }],
  ['an error that is not a Status', answer('<h1>Bad gateway', 'text/html', 502)],
  ['an answer in HTML', answer('<h1>Please log in</h1>', 'text/html')],
  ['an empty answer', answer('')],
  ['an answer that is no list', answer('{}')],
  ['a list of something else', listAnswer({ kind: 'PodList', items: [] })],
  ['a list without items', listAnswer({ kind: 'ServiceList' })],
  ['a list without a version', listAnswer({ kind: 'ServiceList', metadata: {}, items: [] })],
  ['protobuf that is cut off', answer('k8s\0\x12\x7f', PROTOBUF)],
  ['protobuf that is something else', answer('{"kind":"ServiceList"}', PROTOBUF)],
  ['protobuf that is empty', answer('', PROTOBUF)],
];

function listAnswer(list: Readonly<Record<string, unknown>>): Fault {
  return answer(JSON.stringify({ metadata: { resourceVersion: '7' }, ...list }));
}

/** In both encodings. */
describe.each([{ streamsLists: true }, { streamsLists: false, hasProtobuf: false }])(
  '$streamsLists: a list meets',
  (options) => {
    const faulty = options.streamsLists ? 'stream' : 'list';

    it.each(FAULTS)('%s', async (_, fault) => {
      const faults = [
        { on: faulty, fault, times: 6 },
        { on: 'list', fault, times: 3 },
      ] as const;
      const harness = await settled({ ...options, faults });
      expect([...harness.told()].sort()).toEqual(AT_FIRST);
      expect(backOffs(harness).length).toBeGreaterThan(0);
      for (const rule of faults) harness.server.faults.add(rule);
      expect(await listAgain(harness)).toEqual(CHANGED);
    });
  },
);

const CUT = { kind: 'cut', afterBytes: 40 } as const;

/** Failures of one list, and what was waited after each. */
it.each<[string, RequestKind, Fault, readonly (readonly [string, number])[]]>([
  ['the time that a server asks for', 'list', BUSY, [['busy', 7000]]],
  ['the time that a server asks for', 'stream', BUSY, [['busy', 7000]]],
  ['a minute where the header asks for a month', 'list', busyFor('3000000'), [['busy', 60_000]]],
  [
    'a minute where the Status asks for a month',
    'list',
    status(429, { details: { retryAfterSeconds: 3e6 } }),
    [['busy', 60_000]],
  ],
  ['a second, where it breaks off', 'list', { ...CUT, clean: true }, [['malformed', 0]]],
  ['a second, in the middle', 'list', { ...CUT, clean: false }, [['unreachable', 0]]],
  // The next list is allowed twice as long.
  ['until 15 s, and then a second, without an answer', 'list', { kind: 'hang' }, [['silent', 0]]],
  ['14 s for an answer', 'list', { kind: 'late', ms: 14_000 }, []],
  ['nothing where a type is not acceptable: JSON is asked for at once', 'list', status(406), []],
  ['nothing where a type is not acceptable: JSON is asked for at once', 'stream', status(406), []],
])('a list waits %s (%s)', async (_, on, fault, expected) => {
  const rule = { on, resource: 'services', fault } as const;
  const harness = await settled({ streamsLists: on === 'stream', faults: [rule] });
  const waited = backOffs(harness);
  expect(waited.map(([kind]) => kind)).toEqual(expected.map(([kind]) => kind));
  for (const [index, [, delayMs]] of waited.entries()) {
    const wanted = expected[index]?.[1] ?? 0;
    // The own back-off of a first failure lasts from 0.8 to 1.6 s.
    expect(delayMs).toBeGreaterThanOrEqual(wanted || 800);
    expect(delayMs).toBeLessThanOrEqual(wanted || 1600);
  }
});

function busyFor(retryAfter: string): Fault {
  return status(429, { retryAfter });
}

describe('pages', () => {
  const MANY: readonly RawObject[] = Array.from({ length: 1200 }, (_, index) =>
    service(`s${index}`, { clusterIP: `10.96.${index >> 8}.${index & 255}` }),
  );
  const options = { objects: [...SHOP, ...MANY], streamsLists: false, revision: 5000 };
  const forget = (harness: Harness): Fault => ({ kind: 'do', action: () => harness.server.compact() });

  // The first list comes from the cache, which has no pages; one that must be the latest has.
  it.each<[string, ((harness: Harness) => Fault) | undefined, readonly string[]]>([
    ['are read to the last', undefined, ['1', '500', '500 continued', '500 continued']],
    ['that the server forgets are replaced by everything', forget, ['1', '500', '500 continued', 'all']],
    [
      'whose token it does not know are replaced by everything',
      () => status(400, { reason: 'BadRequest', message: 'invalid continue token' }),
      ['1', '500', '500 continued', 'all'],
    ],
  ])('%s', async (_, faultOf, asked) => {
    const harness = await settled(options);
    const { server, told } = harness;
    told();
    const before = server.log.length;
    const fault = faultOf?.(harness);
    // What is the version now?; the first page.
    if (fault) server.faults.add({ on: 'list', resource: 'services', after: 2, fault });
    server.replace([...SHOP, ...MANY.slice(10)], 50);
    await harness.settled();
    const lists = server.log
      .slice(before)
      .filter(({ kind, resource }) => kind === 'list' && resource === 'services');
    expect(
      lists.map(({ query }) => `${query['limit'] ?? 'all'}${query['continue'] ? ' continued' : ''}`),
    ).toEqual(asked);
    expect(lists.some(({ query }) => query['continue'] && 'resourceVersion' in query)).toBe(false);
    expect(told()).toHaveLength(10);
  });

  it.each([{ clean: true }, { clean: false }])(
    'that break off delete nothing ($clean)',
    async ({ clean }) => {
      const harness = await settled(options);
      const fault = { kind: 'cut', afterBytes: 40_000, clean } as const;
      harness.server.faults.add({ on: 'list', resource: 'services', fault, times: 2 });
      expect(await listAgain(harness)).toEqual(CHANGED);
    },
  );

  it('may come a few bytes at a time', async () => {
    const fault = { kind: 'slow', bytes: 7 } as const;
    const harness = await settled({ streamsLists: false, faults: [{ on: 'list', fault, times: 3 }] });
    expect([...harness.told()].sort()).toEqual(AT_FIRST);
  });
});

/** Streaming lists fail always; ordinary lists do not. `asked`: how many of three resources ask for another stream when all is listed again. */
it.each<[string, Fault, asked: number]>([
  ['422', status(422, { reason: 'Invalid', message: 'sendInitialEvents is forbidden' }), 0],
  ['400', status(400, { reason: 'BadRequest' }), 0],
  ['403', status(403, { reason: 'Forbidden' }), 0],
  ['a 500', status(500, { reason: 'InternalError' }), 0],
  ['an error in the stream', inStream(500, { reason: 'InternalError' }), 0],
  ['a version that is gone', inStream(410, { reason: 'Expired' }), 3],
  ['a 401', status(401, { reason: 'Unauthorized' }), 3],
  ['a 404', status(404, { reason: 'NotFound' }), 3],
  ['a 504', status(504, { reason: 'Timeout' }), 0],
  ['a broken connection', { kind: 'reset' }, 3],
  ['no answer', { kind: 'hang' }, 3],
  ['HTML', answer('<h1>Log in\n', 'text/html'), 3],
  ['an end without the last bookmark', { kind: 'endAtOnce' }, 3],
])(
  'a streaming list that always meets %s is followed at once by an ordinary one',
  async (_, fault, asked) => {
    const harness = await settled({ faults: [{ on: 'stream', fault, times: ALWAYS }] });
    const { server, diagnostics } = harness;
    expect([...harness.told()].sort()).toEqual(AT_FIRST);
    expect(backOffs(harness)).toEqual([]);
    expect([server.count('stream'), server.count('list')]).toEqual([3, 3]);
    expect(diagnostics.filter(({ kind }) => kind === 'streamingRefused')).toHaveLength(3);
    expect(await listAgain(harness)).toEqual(CHANGED);
    expect(server.count('stream')).toBe(3 + asked);
  },
);

it('a streaming list that meets a busy server is followed by an ordinary one when the time is over', async () => {
  const harness = await settled({ faults: [{ on: 'stream', fault: BUSY, times: ALWAYS }] });
  expect([...harness.told()].sort()).toEqual(AT_FIRST);
  expect([harness.server.count('stream'), harness.server.count('list')]).toEqual([3, 3]);
  expect(backOffs(harness)).toEqual([1, 2, 3].map(() => ['busy', 7000]));
});

describe('ServiceCIDRs', () => {
  const objects = [
    ...SHOP,
    serviceCidr('a', ['10.96.0.0/16', 'fd00::/112']),
    serviceCidr('b', ['10.96.0.0/16']),
  ];

  it('are emitted whole, after the list and after each change', async () => {
    const harness = await settled({ objects, withServiceCIDRs: true });
    expect(harness.told()).toContain('ServiceCIDRs 10.96.0.0/16 fd00::/112');
    harness.server.delete('ServiceCIDR', 'a');
    await harness.pass(1000);
    expect(harness.told()).toEqual(['ServiceCIDRs 10.96.0.0/16']);
  });

  it('are left out where the server refuses them, until it allows them', async () => {
    const forbidden = status(403, { reason: 'Forbidden' });
    const faults = [{ on: 'any', resource: 'servicecidrs', fault: forbidden, times: 6 }] as const;
    const harness = await settled({ objects, withServiceCIDRs: true, faults });
    const told = harness.told();
    const [synced, allowed] = ['synced', 'ServiceCIDRs 10.96.0.0/16 fd00::/112'].map((line) =>
      told.indexOf(line),
    );
    expect(synced).toBeGreaterThan(-1);
    expect(allowed).toBeGreaterThan(synced ?? 0);
  });

  it('are none where the server does not know them', async () => {
    const harness = await startHarness({ objects, withServiceCIDRs: true, without: ['servicecidrs'] });
    await harness.pass(5000);
    expect(harness.told()).toEqual(expect.arrayContaining(['ServiceCIDRs ', 'synced']));
  });
});

describe('an encoding', () => {
  const accepted = ({ server }: Harness): readonly (string | undefined)[] => [
    ...new Set(server.log.filter(({ kind }) => kind !== 'other').map(({ headers }) => headers.accept)),
  ];

  it.each([
    ['is protobuf, where the server has it', { streamsLists: true, withServiceCIDRs: true }],
    ['is JSON, where the server has nothing else', { hasProtobuf: false }],
  ] as const)('%s', async (_, options) => {
    const harness = await settled(options);
    expect(accepted(harness)).toEqual([`${PROTOBUF}, application/json`]);
    expect(await listAgain(harness)).toEqual(CHANGED);
  });

  it('is JSON where that is wanted, in pages', async () => {
    const harness = await settled({ encoding: 'json', streamsLists: false });
    expect(accepted(harness)).toEqual(['application/json']);
    expect(await listAgain(harness)).toEqual(CHANGED);
    const lists = harness.server.log.filter(({ kind }) => kind === 'list');
    expect(lists.map(({ query }) => query['limit'])).toEqual(lists.map(() => '500'));
  });

  it('changes with the server', async () => {
    const harness = await settled();
    harness.server.hasProtobuf = false;
    expect(await listAgain(harness)).toEqual(CHANGED);
  });
});
