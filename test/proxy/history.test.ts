import { describe, expect, test } from 'vitest';
import type { ChangeRecord } from '../../src/explain/types.ts';
import { ChangeHistory } from '../../src/proxy/history.ts';
import { Proxier } from '../../src/proxy/proxier.ts';
import { SETTINGS } from '../plan/given.ts';
import { FakeClock } from '../time/fakeClock.ts';
import { FakeWriter, REPORT } from './fakes.ts';
import { tell, WEB, WEB_1 } from './given.ts';

const WEB_2 = 'shop/web-1 of web 80 | 10.244.0.1 node-a | 10.244.0.2 node-b';

function make() {
  const clock = new FakeClock();
  const writer = new FakeWriter();
  const emitted: ChangeRecord[] = [];
  let last = 0;
  const history = new ChangeHistory({
    family: 'IPv4',
    clock,
    wallTime: () => 1000 + clock.now(),
    nextId: () => ++last,
    onRecord: (record) => emitted.push(record),
  });
  const proxy = new Proxier({ family: 'IPv4', settings: SETTINGS, writer, history });
  proxy.onSynced();
  return { clock, writer, history, proxy, emitted };
}

async function started() {
  const made = make();
  tell(made.proxy, WEB, WEB_1, 'shop/db 10.96.0.2 5432');
  await made.proxy.sync();
  await made.clock.advance(100);
  return made;
}

describe('a change', () => {
  test('is seen, planned and committed, with causes and effects in words', async () => {
    const { clock, history, proxy } = await started();
    expect(history.records()).toEqual([]);
    tell(proxy, WEB_2);
    await clock.advance(5);
    await proxy.sync();
    expect(history.records('shop/web')).toEqual([
      {
        id: 1,
        family: 'IPv4',
        service: 'shop/web',
        causes: ['EndpointSlice shop/web-1: endpoint 10.244.0.2 added'],
        effects: ['shop/web/TCP: endpoint 10.244.0.2:80 added to cluster'],
        seenAt: 1100,
        plannedAt: 1105,
        committedAt: 1105,
      },
    ]);
    expect(history.records('shop/db')).toEqual([]);
  });

  test('of several, the sync knows when the oldest was seen', async () => {
    const { clock, proxy } = await started();
    tell(proxy, WEB_2);
    await clock.advance(5);
    tell(proxy, '- shop/db');
    expect((await proxy.sync())?.seenAt).toBe(1100);
    expect((await proxy.sync())?.seenAt).toBeUndefined();
  });

  test('is emitted in words after the sync, and not by it', async () => {
    const { clock, proxy, emitted } = await started();
    tell(proxy, WEB_2, '- shop/db');
    await proxy.sync();
    expect(emitted).toEqual([]);
    await clock.advance(0);
    expect(emitted.map(({ service, effects }) => [service, ...effects])).toEqual([
      ['shop/web', 'shop/web/TCP: endpoint 10.244.0.2:80 added to cluster'],
      ['shop/db', 'shop/db/TCP: removed'],
    ]);
  });

  test('that is taken back leaves nothing, and the next one is seen when it comes', async () => {
    const { clock, history, proxy } = await started();
    tell(proxy, WEB_2);
    tell(proxy, WEB_1);
    await proxy.sync();
    expect(history.records()).toEqual([]);
    await clock.advance(1000);
    tell(proxy, WEB_2);
    await proxy.sync();
    expect(history.records().map(({ seenAt }) => seenAt)).toEqual([2100]);
  });

  test('that the kernel refuses has what it said', async () => {
    const { history, proxy, writer } = await started();
    tell(proxy, WEB_2);
    writer.report = () => ({ ...REPORT, refused: new Map([['shop/web/TCP', new Error('EINVAL')]]) });
    await proxy.sync();
    expect(history.records()[0]?.refused).toBe('EINVAL');
  });

  test('that could not be written is not committed, until a later sync writes it', async () => {
    const { clock, history, proxy, writer } = await started();
    tell(proxy, WEB_2);
    writer.report = () => Promise.reject(new Error('busy'));
    await expect(proxy.sync()).rejects.toThrow('busy');
    expect(history.records()[0]?.committedAt).toBeUndefined();
    writer.report = () => REPORT;
    await clock.advance(50);
    await proxy.sync();
    expect(history.records()[0]).toMatchObject({ plannedAt: 1100, committedAt: 1150 });
  });
});

test('there are a thousand records at most: the oldest goes first', async () => {
  const { history, proxy } = await started();
  for (let count = 0; count < 1002; count++) {
    tell(proxy, count % 2 === 0 ? WEB_2 : WEB_1);
    await proxy.sync();
  }
  const records = history.records();
  expect(records).toHaveLength(1000);
  expect([records[0]?.id, records.at(-1)?.id]).toEqual([1002, 3]);
});
