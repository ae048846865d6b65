/** What a family writes, from objects to the calls of its writer: which service ports, in which sync, in which order. */
import { describe, expect, test } from 'vitest';
import { Proxier } from '../../src/proxy/proxier.ts';
import { TimeSlice } from '../../src/time/timeSlice.ts';
import { SETTINGS, slice } from '../plan/given.ts';
import { FakeClock, settle } from '../time/fakeClock.ts';
import { FakeWriter, REPORT } from './fakes.ts';
import { make, tell, WEB, WEB_1 } from './given.ts';

type Made = ReturnType<typeof make>;

const DB = 'shop/db 10.96.0.2 5432';
const FAILS = (): Promise<never> => Promise.reject(new Error('lock'));
const WRITES = (): typeof REPORT => REPORT;

/** Serves these, and has written them. */
async function serving(...lines: readonly string[]): Promise<Made> {
  const made = make();
  made.proxy.onSynced();
  tell(made.proxy, ...lines);
  await made.proxy.sync();
  made.writer.syncs.length = 0;
  return made;
}

/** One run: syncs until nothing is left. `arrivals`: what comes while each of them is under way. */
async function run(
  { proxy, writer }: Made,
  ...arrivals: readonly (readonly string[])[]
): Promise<readonly string[]> {
  let turn = 0;
  writer.report = () => {
    tell(proxy, ...(arrivals[turn++] ?? []));
    return REPORT;
  };
  const order: string[] = [];
  for (let outcome = await proxy.sync(); outcome; ) {
    order.push(...outcome.changes.map(({ id }) => id));
    outcome = outcome.isPartial ? await proxy.sync('next') : undefined;
  }
  return order;
}

describe('before the first full picture', () => {
  test('nothing is written; all that was told is written then, however large', async () => {
    const { writer, proxy } = make();
    tell(proxy, WEB, large(1));
    expect(await proxy.sync()).toBeUndefined();
    expect([proxy.isSynced, writer.syncs]).toEqual([false, []]);
    proxy.onSynced();
    tell(proxy, DB);
    expect(await proxy.sync()).not.toHaveProperty('isPartial');
    expect(writer.syncs).toEqual([['shop/L1/TCP', 'shop/db/TCP', 'shop/web/TCP']]);
  });
});

describe('a sync', () => {
  test('writes what changed, and answers what it was', async () => {
    const { writer, proxy } = await serving(WEB, DB);
    tell(proxy, WEB_1);
    const outcome = await proxy.sync();
    expect(writer.syncs).toEqual([['shop/web/TCP']]);
    expect(outcome?.changes.map(({ id }) => id)).toEqual(['shop/web/TCP']);
    expect(writer.plan?.servicePorts.get('shop/web/TCP')?.pools.cluster).toHaveLength(1);
  });

  test('writes a service port once that gets an address of another one and an endpoint', async () => {
    const { writer, proxy } = await serving(
      'shop/a 10.96.0.1 80 ext=203.0.113.1',
      'shop/b 10.96.0.2 80 ext=203.0.113.1',
    );
    tell(proxy, '- shop/a', 'shop/b-1 of b 80 | 10.244.0.1');
    const outcome = await proxy.sync();
    expect(writer.syncs).toEqual([['shop/a/TCP', 'shop/b/TCP']]);
    const change = outcome?.changes.find(({ id }) => id === 'shop/b/TCP');
    expect([change?.previous?.frontends.length, change?.current?.frontends.length]).toEqual([1, 2]);
  });

  test('that fails is made up for by the next, which answers what changed since the last that did not', async () => {
    const { writer, proxy } = await serving(WEB, WEB_1);
    writer.report = FAILS;
    tell(proxy, 'shop/web-1 of web 80 | 10.244.0.2');
    await expect(proxy.sync()).rejects.toThrow('lock');
    tell(proxy, DB, 'shop/web-1 of web 80 | 10.244.0.3');
    await expect(proxy.sync()).rejects.toThrow('lock');
    writer.report = WRITES;
    const outcome = await proxy.sync();
    await proxy.sync();
    const both = ['shop/db/TCP', 'shop/web/TCP'];
    expect(writer.syncs).toEqual([['shop/web/TCP'], both, both, []]);
    const web = outcome?.changes.find(({ id }) => id === 'shop/web/TCP');
    expect([web?.previous, web?.current].map((plan) => plan?.pools.cluster?.map(({ key }) => key))).toEqual([
      ['10.244.0.1:80'],
      ['10.244.0.3:80'],
    ]);
  });

  test('leaves what changes while it is under way for the next', async () => {
    const { writer, proxy } = await serving();
    tell(proxy, WEB);
    let finish = (): void => {};
    writer.report = () =>
      new Promise((resolve) => {
        finish = () => resolve(REPORT);
      });
    const first = proxy.sync();
    await settle();
    tell(proxy, WEB_1, DB);
    finish();
    await first;
    writer.report = WRITES;
    await proxy.sync();
    expect(writer.syncs[1]).toEqual(['shop/db/TCP', 'shop/web/TCP']);
  });

  test('is needed for what this family sees, and not for what is taken back', () => {
    const { proxy } = make('IPv6');
    const lines = [WEB, WEB_1, 'shop/web fd00::1 80', 'shop/web-6 of web 80 | fd00:244::1'];
    expect(lines.map((line) => tell(proxy, line))).toEqual([false, false, true, true]);
    const { proxy: four } = make();
    expect([WEB, '- shop/web'].map((line) => tell(four, line))).toEqual([true, false]);
  });
});

test('what is told between two slices of planning is neither lost nor mixed up', async () => {
  const clock = new FakeClock();
  const writer = new FakeWriter();
  const timeSlice = new TimeSlice(clock, 0); // others are due after every service
  const proxy = new Proxier({ family: 'IPv4', settings: SETTINGS, writer, timeSlice });
  proxy.onSynced();
  const before = [1, 2, 3, 4].flatMap((number) => [
    `shop/s${number} 10.96.0.${number} 80 ext=192.0.2.1`,
    `shop/s${number}-1 of s${number} 80 | 10.244.0.${number} node-a`,
  ]);
  const meanwhile = [
    'shop/s1-1 of s1 80 | 10.244.9.1 node-a', // planned already
    'shop/s3-1 of s3 80 | 10.244.9.3 node-a', // its turn is yet to come
    '- shop/s4',
    'shop/s5 10.96.0.5 80',
    'shop/s5-1 of s5 80 | 10.244.0.5 node-a',
  ];
  tell(proxy, ...before);
  clock.schedule(0, () => tell(proxy, ...meanwhile));
  const first = proxy.sync();
  await clock.advance(0);
  expect([...((await first)?.changes ?? [])].map(({ id }) => id)).toContain('shop/s4/TCP');
  expect(proxy.plan.servicePorts.has('shop/s5/TCP')).toBe(false);
  const second = proxy.sync();
  await clock.advance(0);
  await second;
  expect(writer.syncs[1]).toEqual(['shop/s1/TCP', 'shop/s4/TCP', 'shop/s5/TCP']);

  const fresh = make().proxy;
  tell(fresh, ...before, ...meanwhile);
  fresh.replan();
  expect(new Map(proxy.plan.servicePorts)).toEqual(new Map(fresh.plan.servicePorts));
  expect(proxy.plan.endpointCount).toBe(fresh.plan.endpointCount);
});

/** A service that is written by itself; another version each time. */
let version = 0;
function large(number: number): string {
  version++;
  const addresses = Array.from({ length: 2500 }, (_, index) => `172.${number}.${index >> 8}.${index & 255}`);
  return `shop/L${number} 10.96.9.${number} ${1000 + version} ext=${addresses.join(',')}`;
}

function small(name: string): string {
  version++;
  return `shop/${name} 10.96.8.${name.charCodeAt(0)} ${1000 + version}`;
}

const told = (words: string): readonly string[] =>
  words
    .split(' ')
    .flatMap((word) => (word === '' ? [] : word.startsWith('L') ? large(Number(word[1])) : small(word)));

/** What waits, what comes during each sync, and what each sync of the run writes. */
test.each<[string, waiting: string, arrivals: readonly string[], syncs: string, left: string]>([
  ['small ones together', 'a b c', [], 'a b c', ''],
  ['a large one by itself, after the small ones', 'a L1 b', [], 'a b, L1', ''],
  [
    'what comes meanwhile waits for one large one at most',
    'L1 L2 L3',
    ['a', 'b', 'c'],
    'L1, a, L2, b c, L3',
    '',
  ],
  ['a large one does not wait for small ones without end', 'a L1', ['b', 'c', 'd'], 'a, L1, b c', 'd'],
  [
    'a large one that changes all the time does not keep a run from its end',
    'L1',
    ['L1 a', 'L1 b'],
    'L1, a',
    'L1 b',
  ],
])('%s', async (_, waiting, arrivals, syncs, left) => {
  const made = await serving(WEB);
  tell(made.proxy, ...told(waiting));
  await run(made, ...arrivals.map(told));
  const names = (): string =>
    made.writer.syncs.map((ids) => ids.map((id) => id.split('/')[1] ?? '').join(' ')).join(', ');
  expect(names()).toBe(syncs);
  made.writer.syncs.length = 0;
  await run(made);
  expect(names().split(', ').join(' ').split(' ').toSorted().join(' ')).toBe(
    left.split(' ').toSorted().join(' '),
  );
});

describe('a writer that wants some at a time', () => {
  const PORTS = 'shop/large 10.96.0.9 a:1 b:2 c:3 d:4';
  const FOUR = [PORTS, 'shop/large-1 of large a:1 b:2 c:3 d:4 | 10.244.0.9'];

  async function wanting(writes: number | undefined): Promise<Made> {
    const made = await serving(WEB, WEB_1, DB, 'shop/db-1 of db 5432 | 10.244.0.2');
    made.writer.writesPerSync = writes;
    return made;
  }

  test('gets all of them at the start', async () => {
    const made = make();
    made.writer.writesPerSync = 3;
    made.proxy.onSynced();
    tell(made.proxy, ...FOUR, WEB);
    expect(await made.proxy.sync()).not.toHaveProperty('isPartial');
  });

  test('gets the rest in the next syncs, with what is new before it; times count once all is written', async () => {
    const made = await wanting(3);
    const { proxy, writer } = made;
    tell(proxy, PORTS);
    proxy.onEndpointSlice('shop/large-1', { ...slice(FOUR[1] ?? ''), triggerTime: 1_800_000_000_000 });
    const first = await proxy.sync();
    tell(proxy, 'shop/web-1 of web 80 | 10.244.0.7');
    const [second, third] = [await proxy.sync('next'), await proxy.sync('next')];
    expect(writer.syncs).toEqual([
      ['shop/large:a/TCP', 'shop/large:b/TCP'],
      ['shop/large:c/TCP', 'shop/web/TCP'],
      ['shop/large:d/TCP'],
    ]);
    expect([first, second, third].map((outcome) => outcome?.isPartial)).toEqual([true, true, undefined]);
    expect([first, second, third].map((outcome) => outcome?.triggers.length)).toEqual([0, 0, 1]);
  });

  test('gets services that are dialled already before new ones, and who loses an address last', async () => {
    const made = await wanting(2);
    tell(made.proxy, 'shop/db 10.96.0.2 6432', ...FOUR, 'shop/web-1 of web 80 | 10.244.0.8', '- shop/db');
    const order = await run(made);
    expect([order.length, order[0], order.at(-1)]).toEqual([6, 'shop/web/TCP', 'shop/db/TCP']);
  });

  test('gets the endpoints of a small service before the rest of those of a large one, but not every time', async () => {
    const made = await wanting(undefined);
    tell(made.proxy, PORTS);
    await run(made);
    made.writer.syncs.length = 0;
    made.writer.writesPerSync = 8;
    const many = Array.from({ length: 6 }, (_, index) => `10.244.1.${index}`).join(' | ');
    tell(made.proxy, `shop/large-1 of large a:1 b:2 c:3 d:4 | ${many}`);
    await run(made, ['shop/web-1 of web 80 | 10.244.0.7'], ['shop/web-1 of web 80 | 10.244.0.8']);
    expect(made.writer.syncs).toEqual([
      ['shop/large:a/TCP', 'shop/large:b/TCP'],
      ['shop/web/TCP'],
      ['shop/large:c/TCP', 'shop/large:d/TCP', 'shop/web/TCP'],
    ]);
  });

  test('that failed gets them again', async () => {
    const made = await wanting(3);
    tell(made.proxy, ...FOUR);
    made.writer.report = FAILS;
    await expect(made.proxy.sync()).rejects.toThrow('lock');
    await run(made);
    expect(new Set(made.writer.syncs.flat()).size).toBe(4);
  });
});
