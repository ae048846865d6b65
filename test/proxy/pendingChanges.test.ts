import { describe, expect, test } from 'vitest';
import type { ChangeRecord } from '../../src/explain/types.ts';
import { PendingChanges } from '../../src/proxy/pendingChanges.ts';
import { Proxier } from '../../src/proxy/proxier.ts';
import { SETTINGS } from '../plan/given.ts';
import { FakeClock } from '../time/fakeClock.ts';
import { FakeWriter, REPORT } from './fakes.ts';
import { tell, WEB, WEB_1 } from './given.ts';

const WEB_2 = 'shop/web-1 of web 80 | 10.244.0.1 node-a | 10.244.0.2 node-b';

/** The first services are in the kernel. */
async function started() {
  const clock = new FakeClock();
  const writer = new FakeWriter();
  const records: ChangeRecord[] = [];
  const pendingChanges = new PendingChanges({
    family: 'IPv4',
    clock,
    wallTime: () => 1000 + clock.now(),
    nextId: () => records.length + 1,
    onRecord: (record) => records.push(record),
  });
  const proxy = new Proxier({ family: 'IPv4', settings: SETTINGS, writer, pendingChanges });
  proxy.onSynced();
  tell(proxy, WEB, WEB_1, 'shop/db 10.96.0.2 5432');
  await proxy.sync();
  await clock.advance(100);
  expect(records).toEqual([]);
  return { clock, writer, proxy, records };
}

describe('a change', () => {
  test('is seen, planned and committed, and then emitted in words', async () => {
    const { clock, proxy, records } = await started();
    tell(proxy, WEB_2);
    await clock.advance(5);
    tell(proxy, '- shop/db');
    expect((await proxy.sync())?.seenAt).toBe(1100);
    expect(records).toEqual([]);
    await clock.advance(0);
    expect(records).toEqual([
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
      expect.objectContaining({ id: 2, service: 'shop/db', effects: ['shop/db/TCP: removed'], seenAt: 1105 }),
    ]);
    expect((await proxy.sync())?.seenAt).toBeUndefined();
  });

  test('that is taken back leaves nothing, and the next one is seen when it comes', async () => {
    const { clock, proxy, records } = await started();
    tell(proxy, WEB_2);
    tell(proxy, WEB_1);
    await proxy.sync();
    await clock.advance(1000);
    expect(records).toEqual([]);
    tell(proxy, WEB_2);
    await proxy.sync();
    await clock.advance(0);
    expect(records.map(({ seenAt }) => seenAt)).toEqual([2100]);
  });

  test('that the kernel refuses has what it said', async () => {
    const { clock, proxy, records, writer } = await started();
    tell(proxy, WEB_2);
    writer.report = () => ({ ...REPORT, refused: new Map([['shop/web/TCP', new Error('EINVAL')]]) });
    await proxy.sync();
    await clock.advance(0);
    expect(records[0]?.refused).toBe('EINVAL');
  });

  test('that could not be written is one with what comes before a later sync writes it', async () => {
    const { clock, proxy, records, writer } = await started();
    tell(proxy, WEB_2);
    writer.report = () => Promise.reject(new Error('busy'));
    await expect(proxy.sync()).rejects.toThrow('busy');
    writer.report = () => REPORT;
    await clock.advance(50);
    tell(proxy, 'shop/web-1 of web 80 | 10.244.0.2 node-b | 10.244.0.3 node-b');
    await proxy.sync();
    await clock.advance(0);
    expect(records).toEqual([
      {
        id: 1,
        family: 'IPv4',
        service: 'shop/web',
        causes: [
          'EndpointSlice shop/web-1: endpoint 10.244.0.2 added, endpoint 10.244.0.3 added, endpoint 10.244.0.1 removed',
        ],
        effects: [
          'shop/web/TCP: endpoint 10.244.0.2:80 added to cluster',
          'shop/web/TCP: endpoint 10.244.0.3:80 added to cluster',
          'shop/web/TCP: endpoint 10.244.0.1:80 removed from cluster',
        ],
        seenAt: 1100,
        plannedAt: 1100,
        committedAt: 1150,
      },
    ]);
  });
});
