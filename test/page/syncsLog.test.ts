/** The events that the page keeps: bounded, in order, none twice, and gaps where there are some. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { EventLog } from '../../page/src/views/syncsLog.ts';
import type { WatchEvent } from '../../src/explain/types.ts';

const sync = (at: number): WatchEvent => ({
  kind: 'sync',
  at,
  family: 'IPv4',
  sync: 'incremental',
  cause: 'Service shop/web changed',
  commits: 1,
  objects: 3,
  ms: 4,
  planMs: 1,
  writeMs: 3,
});
const change = (at: number, id = at): WatchEvent => ({
  kind: 'change',
  id,
  family: 'IPv4',
  service: 'shop/web',
  causes: [],
  effects: [],
  seenAt: at,
  plannedAt: at,
  committedAt: at,
});
const lost = (at: number): WatchEvent => ({ kind: 'lost', at, events: 7 });

test.each<[string, added: readonly WatchEvent[], past: readonly WatchEvent[], kept: string, gaps: string]>([
  ['what comes is kept in its order', [sync(10), change(9)], [], '1:10 2:9', ''],
  [
    'lost events are a gap since the one before',
    [sync(10), lost(25), sync(30)],
    [],
    '1:10 2:25 3:30',
    '10-25',
  ],
  ['the past comes before it, once', [sync(30)], [sync(10), sync(20), sync(30)], '4:10 5:20 6:30', ''],
  ['what is newer keeps the numbers', [sync(10)], [sync(10), sync(20)], '1:10 2:20', ''],
  ['another run of the proxy leaves a gap', [change(10)], [change(50), sync(60)], '1:10 2:50 3:60', '10-50'],
  ['changes of one number are two', [change(10)], [change(40, 10)], '1:10 2:40', '10-40'],
])('%s', (_, added, past, kept, gaps) => {
  const log = new EventLog();
  log.add(added);
  if (past.length > 0) log.merge(past);
  expect(log.entries.map(({ id, at }) => `${id}:${at}`).join(' ')).toBe(kept);
  expect(log.gaps.map(({ from, to }) => `${from}-${to}`).join(' ')).toBe(gaps);
});

test('never more than it may keep; numbers ascend; every event of a merge is there', () => {
  const times = fc.array(fc.integer({ min: 0, max: 200 }), { maxLength: 40 });
  const steps = fc.array(fc.record({ isPast: fc.boolean(), times }), { maxLength: 8 });
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 60 }), (all, most) => {
      const log = new EventLog(most);
      for (const { isPast, times: some } of all) {
        const sorted = [...new Set(some)].sort((a, b) => a - b);
        if (isPast) log.merge(sorted.map(sync));
        else log.add(sorted.map(sync));
        expect(log.entries.length).toBeLessThanOrEqual(most);
        const ids = log.entries.map(({ id }) => id);
        expect(ids).toEqual([...new Set(ids)].sort((a, b) => a - b));
        if (isPast && sorted.length <= most && log.entries.length < most)
          expect(log.entries.map(({ at }) => at)).toEqual(expect.arrayContaining(sorted));
      }
    }),
  );
});
