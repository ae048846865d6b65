import { describe, expect, test } from 'vitest';
import type { SyncReport } from '../../src/proxy/report.ts';
import { UNBOUNDED } from '../../src/plan/capacity.ts';
import { Proxier } from '../../src/proxy/proxier.ts';
import { node, SETTINGS } from '../plan/given.ts';
import { TimeSlice } from '../../src/time/timeSlice.ts';
import { FakeClock, settle } from '../time/fakeClock.ts';
import { FakeWriter, REPORT } from './fakes.ts';
import { make, tell, WEB, WEB_1 } from './given.ts';

describe('before the first full picture', () => {
  test('nothing is written', async () => {
    const { writer, proxy } = make();
    tell(proxy, WEB, WEB_1);
    expect(await proxy.sync()).toBeUndefined();
    expect(writer.syncs).toEqual([]);
    expect(proxy.isSynced).toBe(false);
  });

  test('all that was told is written then', async () => {
    const { writer, proxy } = make();
    tell(proxy, WEB);
    await proxy.sync();
    proxy.onSynced();
    tell(proxy, 'shop/db 10.96.0.2 5432');
    await proxy.sync();
    expect(writer.syncs).toEqual([['shop/db/TCP', 'shop/web/TCP']]);
  });
});

describe('a sync', () => {
  test('writes a service port once that is planned twice: it gets an address of another one, and an endpoint', async () => {
    const { writer, proxy } = make();
    proxy.onSynced();
    tell(proxy, 'shop/a 10.96.0.1 80 ext=203.0.113.1', 'shop/b 10.96.0.2 80 ext=203.0.113.1');
    await proxy.sync();
    tell(proxy, '- shop/a', 'shop/b-1 of b 80 | 10.244.0.1');
    const outcome = await proxy.sync();
    expect(writer.syncs[1]).toEqual(['shop/a/TCP', 'shop/b/TCP']);
    const change = outcome?.changes.find(({ id }) => id === 'shop/b/TCP');
    expect([change?.previous?.frontends.length, change?.current?.frontends.length]).toEqual([1, 2]);
  });

  test('writes what changed, and answers what it was', async () => {
    const { writer, proxy } = make();
    proxy.onSynced();
    tell(proxy, WEB, 'shop/db 10.96.0.2 5432');
    await proxy.sync();
    tell(proxy, WEB_1);
    const outcome = await proxy.sync();
    expect(writer.syncs[1]).toEqual(['shop/web/TCP']);
    expect(outcome?.changes.map(({ id }) => id)).toEqual(['shop/web/TCP']);
    expect(writer.plan?.servicePorts.get('shop/web/TCP')?.pools.cluster).toHaveLength(1);
  });

  test('with nothing new still asks the writer, which may have something to repair', async () => {
    const { writer, proxy } = make();
    proxy.onSynced();
    await proxy.sync();
    expect(writer.syncs).toEqual([[]]);
  });

  test('that fails is made up for by the next', async () => {
    const { writer, proxy } = make();
    proxy.onSynced();
    tell(proxy, WEB);
    writer.report = () => Promise.reject(new Error('lock'));
    await expect(proxy.sync()).rejects.toThrow('lock');
    tell(proxy, 'shop/db 10.96.0.2 5432');
    await expect(proxy.sync()).rejects.toThrow('lock');
    writer.report = new FakeWriter().report;
    await proxy.sync();
    await proxy.sync();
    expect(writer.syncs).toEqual([
      ['shop/web/TCP'],
      ['shop/db/TCP', 'shop/web/TCP'],
      ['shop/db/TCP', 'shop/web/TCP'],
      [],
    ]);
  });

  test('that succeeds answers what changed since the last that did', async () => {
    const { writer, proxy } = make();
    proxy.onSynced();
    tell(proxy, WEB, WEB_1);
    await proxy.sync();
    writer.report = () => Promise.reject(new Error('lock'));
    tell(proxy, 'shop/web-1 of web 80 | 10.244.0.2');
    await expect(proxy.sync()).rejects.toThrow('lock');
    tell(proxy, 'shop/web-1 of web 80 | 10.244.0.3');
    writer.report = new FakeWriter().report;
    const outcome = await proxy.sync();
    const pools = outcome?.changes.map(({ previous, current }) =>
      [previous, current].map((plan) => plan?.pools.cluster?.map(({ key }) => key)),
    );
    expect(pools).toEqual([[['10.244.0.1:80'], ['10.244.0.3:80']]]);
    expect((await proxy.sync())?.changes).toEqual([]);
  });

  test('what changes while it is under way is for the next', async () => {
    const { writer, proxy } = make();
    proxy.onSynced();
    tell(proxy, WEB);
    let finish = (): void => {};
    writer.report = () =>
      new Promise((resolve) => {
        finish = () => resolve({ ...REPORT_OF_NOTHING });
      });
    const first = proxy.sync();
    await settle();
    tell(proxy, WEB_1, 'shop/db 10.96.0.2 5432');
    finish();
    await first;
    writer.report = new FakeWriter().report;
    await proxy.sync();
    expect(writer.syncs[1]).toEqual(['shop/db/TCP', 'shop/web/TCP']);
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

const REPORT_OF_NOTHING: SyncReport = { ...REPORT, kind: 'nothing', commits: 0 };

describe('whether a sync is needed', () => {
  test('for what this family sees', () => {
    const { proxy } = make('IPv6');
    expect(tell(proxy, WEB)).toBe(false);
    expect(tell(proxy, WEB_1)).toBe(false);
    expect(tell(proxy, 'shop/web fd00::1 80')).toBe(true);
    expect(tell(proxy, 'shop/web-6 of web 80 | fd00:244::1')).toBe(true);
  });
  test('not for what is taken back', () => {
    const { proxy } = make();
    expect(tell(proxy, WEB)).toBe(true);
    expect(tell(proxy, '- shop/web')).toBe(false);
  });
});

test("the node's zone changes what is near", async () => {
  const { writer, proxy } = make();
  proxy.onSynced();
  tell(proxy, WEB, 'shop/web-1 of web 80 | 10.244.0.1 zone=a | 10.244.0.2 zone=b');
  await proxy.sync();
  const pool = (): readonly string[] | undefined =>
    writer.plan?.servicePorts.get('shop/web/TCP')?.pools.cluster?.map(({ ip }) => ip);
  expect(pool()).toEqual(['10.244.0.1', '10.244.0.2']);
  proxy.onNode(node('node-a', '192.0.2.10', 'zone=b'));
  await proxy.sync();
  expect(pool()).toEqual(['10.244.0.2']);
  expect(writer.syncs[1]).toEqual(['shop/web/TCP']);
});

test('a request for a full sync goes to the writer', () => {
  const { writer, proxy } = make();
  proxy.writer.requestFull();
  expect(writer.fulls).toBe(1);
});

describe('a large service', () => {
  const addresses = Array.from({ length: 3000 }, (_, index) => `172.20.${index >> 8}.${index & 255}`);
  const LARGE = `shop/large 10.96.0.9 80 ext=${addresses.join(',')}`;

  async function running(): Promise<ReturnType<typeof make>> {
    const made = make();
    made.proxy.onSynced();
    tell(made.proxy, WEB);
    await made.proxy.sync();
    made.writer.syncs.length = 0;
    return made;
  }

  test('is written after the small ones, by itself', async () => {
    const { writer, proxy } = await running();
    tell(proxy, LARGE, WEB_1);
    expect(await proxy.sync()).toMatchObject({ isPartial: true });
    expect(await proxy.sync('next')).not.toHaveProperty('isPartial');
    expect(writer.syncs).toEqual([['shop/web/TCP'], ['shop/large/TCP']]);
  });

  test('goes by itself too', async () => {
    const { writer, proxy } = await running();
    tell(proxy, LARGE);
    await proxy.sync();
    tell(proxy, '- shop/large', WEB_1);
    await proxy.sync();
    await proxy.sync('next');
    expect(writer.syncs.slice(1)).toEqual([['shop/web/TCP'], ['shop/large/TCP']]);
  });

  test('what changes while it is written is written next, without a rest', async () => {
    const { writer, proxy } = await running();
    tell(proxy, LARGE);
    writer.report = () => {
      tell(proxy, WEB_1);
      return REPORT;
    };
    expect(await proxy.sync()).toMatchObject({ isPartial: true });
    expect(await proxy.sync('next')).not.toHaveProperty('isPartial');
    expect(writer.syncs).toEqual([['shop/large/TCP'], ['shop/web/TCP']]);
  });

  test('is in the first sync with everybody', async () => {
    const { writer, proxy } = make();
    tell(proxy, LARGE, WEB);
    proxy.onSynced();
    expect(await proxy.sync()).not.toHaveProperty('isPartial');
    expect(writer.syncs).toEqual([['shop/large/TCP', 'shop/web/TCP']]);
  });

  test('what is beyond its capacity is told once, also where the plan stays the same', async () => {
    const writer = new FakeWriter();
    const capacity = { ...UNBOUNDED, frontends: 2 };
    const proxy = new Proxier({ family: 'IPv4', settings: SETTINGS, writer, capacity });
    proxy.onSynced();
    tell(proxy, 'shop/web 10.96.0.1 80 ext=1.1.1.1');
    await proxy.sync();
    expect(proxy.plan.takeNewCuts()).toEqual([]);
    tell(proxy, 'shop/web 10.96.0.1 80 ext=1.1.1.1,1.1.1.2');
    expect(await proxy.sync()).toMatchObject({ changes: [] });
    expect(proxy.plan.takeNewCuts()).toEqual(['shop/web']);
    expect(proxy.plan.cutsOf('shop/web')).toEqual([
      { field: 'spec.externalIPs', count: 2, served: 1, bound: 'frontends', capacity: 2 },
    ]);
    tell(proxy, WEB_1);
    await proxy.sync();
    expect(proxy.plan.takeNewCuts()).toEqual([]);
    tell(proxy, 'shop/web 10.96.0.1 80 ext=1.1.1.1');
    await proxy.sync();
    expect(proxy.plan.takeNewCuts()).toEqual(['shop/web']);
    expect(proxy.plan.cutsOf('shop/web')).toEqual([]);
  });
});
