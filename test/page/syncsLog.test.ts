/** The events that the page keeps: bounded, in order, none twice, and gaps where there are some. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { EventLog } from '../../page/src/views/syncsLog.ts';
import { changeAt, syncAt } from './events.ts';

describe('what just happened', () => {
  test('is kept in the order in which it came', () => {
    const log = new EventLog();
    log.add([syncAt(10), changeAt(9)]);
    log.add([syncAt(12)]);
    expect(log.entries.map(({ at }) => at)).toEqual([10, 9, 12]);
    expect(log.entries.map(({ id }) => id)).toEqual([1, 2, 3]);
  });

  test('is another list each time, so that an older one can be kept', () => {
    const log = new EventLog();
    log.add([syncAt(1)]);
    const before = log.entries;
    log.add([syncAt(2)]);
    expect(before).toHaveLength(1);
  });

  test('lost events are a gap since the event before', () => {
    const log = new EventLog();
    log.add([syncAt(10), { kind: 'lost', at: 25, events: 7 }, syncAt(30)]);
    expect(log.gaps).toEqual([{ from: 10, to: 25 }]);
  });
});

describe('the past', () => {
  test('comes before what is here', () => {
    const log = new EventLog();
    log.add([syncAt(30)]);
    log.merge([syncAt(10), syncAt(20), syncAt(30)]);
    expect(log.entries.map(({ at }) => at)).toEqual([10, 20, 30]);
    expect(log.gaps).toEqual([]);
  });

  test('what is newer keeps the numbers of what is here', () => {
    const log = new EventLog();
    log.add([syncAt(10)]);
    log.merge([syncAt(10), syncAt(20)]);
    expect(log.entries.map(({ id, at }) => [id, at])).toEqual([
      [1, 10],
      [2, 20],
    ]);
  });

  test('of another run of the proxy leaves a gap', () => {
    const log = new EventLog();
    log.add([changeAt(10)]);
    log.merge([changeAt(50), syncAt(60)]);
    expect(log.gaps).toEqual([{ from: 10, to: 50 }]);
  });

  test('two syncs alike at one time are one; two records of changes with one number are not', () => {
    const log = new EventLog();
    log.add([syncAt(10), changeAt(10)]);
    log.merge([syncAt(10), { ...changeAt(40), id: changeAt(10).id }]);
    expect(log.entries).toHaveLength(3);
  });
});

test('never more than it may keep; numbers ascend; every event of a merge is there once', () => {
  const times = fc.array(fc.integer({ min: 0, max: 200 }), { maxLength: 40 });
  const steps = fc.array(fc.record({ isPast: fc.boolean(), times }), { maxLength: 8 });
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 60 }), (all, most) => {
      const log = new EventLog(most);
      for (const { isPast, times: some } of all) {
        const events = [...new Set(some)].sort((a, b) => a - b).map((at) => syncAt(at));
        if (isPast) log.merge(events);
        else log.add(events);
        expect(log.entries.length).toBeLessThanOrEqual(most);
        const ids = log.entries.map(({ id }) => id);
        expect(ids).toEqual([...new Set(ids)].sort((a, b) => a - b));
        if (isPast && events.length <= most && log.entries.length < most)
          for (const event of events)
            expect(log.entries.filter((entry) => entry.at === timeOf(event)).length).toBeGreaterThan(0);
      }
    }),
  );
});

function timeOf(event: ReturnType<typeof syncAt>): number {
  return event.at;
}
