/** What the timeline draws: bins, lanes, bars, marks, and words for them. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { LoggedEvent } from '../../page/src/views/syncsLog.ts';
import { EventLog } from '../../page/src/views/syncsLog.ts';
import { heightOf, stagesOf, stagesText } from '../../page/src/views/syncsStages.ts';
import {
  barPaths,
  binAt,
  frameOf,
  gapsIn,
  lanesOf,
  nextBin,
  snapBin,
  timesOf,
} from '../../page/src/views/syncsTimeline.ts';
import { binText, frameText } from '../../page/src/views/syncsWords.ts';
import type { WatchEvent } from '../../src/explain/types.ts';
import { changeAt, syncAt } from './events.ts';

function logged(...events: readonly WatchEvent[]): readonly LoggedEvent[] {
  const log = new EventLog();
  log.add(events);
  return log.entries;
}

describe('frames', () => {
  test('what is drawn moves by whole bins', () => {
    const frame = frameOf(60_000, 1_000_123, 100);
    expect(frame).toEqual({ from: 940_200, to: 1_000_200, binMs: 600, bins: 100 });
    expect(frameOf(60_000, 1_000_199, 100)).toEqual(frame);
    expect(frameOf(60_000, 1_000_200, 100).to).toBe(1_000_800);
  });

  test('the end is in the last bin, and each bin holds its own times', () => {
    const range = fc.integer({ min: 1, max: 1e7 });
    fc.assert(
      fc.property(
        range,
        fc.integer({ min: 0, max: 2e12 }),
        fc.integer({ min: 1, max: 500 }),
        (ms, end, bins) => {
          const frame = frameOf(ms, end, bins);
          expect(binAt(frame, end)).toBe(bins - 1);
          expect(frame.to - frame.from).toBeGreaterThanOrEqual(ms);
          const { from, to } = timesOf(frame, 0);
          expect([binAt(frame, from), binAt(frame, to - 1), binAt(frame, from - 1)]).toEqual([
            0,
            0,
            undefined,
          ]);
        },
      ),
    );
  });
});

describe('stages', () => {
  test('a sync that had to wait', () => {
    const sync = syncAt(100, { seenAt: 86 });
    expect(stagesOf(sync)).toEqual({ waitMs: 10, planMs: 1, writeMs: 3, totalMs: 14 });
    expect(stagesText(sync)).toBe('waited 10 ms, planned in 1 ms, written in 3 ms');
  });

  test('one that failed says how long it tried', () => {
    const { planMs: _, writeMs: __, ...failed } = syncAt(100, { sync: 'failed', error: 'no space' });
    expect(stagesOf(failed)).toEqual({ waitMs: 0, planMs: 0, writeMs: 4, totalMs: 4 });
    expect(stagesText(failed)).toBe('failed after 4 ms');
  });

  test('0.1 ms and 10 s are both on the scale', () => {
    expect([0, 0.1, 1, 10, 10_000, 60_000].map(heightOf)).toEqual([0, 0, 0.2, 0.4, 1, 1]);
  });
});

describe('lanes', () => {
  const frame = frameOf(1000, 999, 10);

  test('one for each family, in each bin the slowest sync', () => {
    const entries = logged(
      syncAt(110, { ms: 3, planMs: 1, writeMs: 2 }),
      syncAt(120, { ms: 9, planMs: 1, writeMs: 8 }),
      syncAt(510, { family: 'IPv6' }),
      syncAt(2000),
    );
    const [four, six] = lanesOf(entries, frame);
    expect(four?.bars).toEqual([{ bin: 1, count: 2, slowest: entries[1]?.event, hasFailed: false }]);
    expect(six?.bars.map(({ bin }) => bin)).toEqual([5]);
  });

  test('marks by kind, and a bar that failed', () => {
    const common = { family: 'IPv4', at: 250 } as const;
    const entries = logged(
      { kind: 'foreign', ...common, objects: ['chain x'], program: 'nft', repairedMs: 3 },
      { kind: 'foreign', ...common, objects: ['chain y'], program: 'nft', repairedMs: 3 },
      { kind: 'foreign', ...common, objects: ['chain z'], program: 'nft' },
      { kind: 'conntrack', ...common, deleted: 2, ms: 1 },
      syncAt(255, { sync: 'failed', error: 'no space' }),
    );
    const lanes = lanesOf(entries, frame);
    expect(lanes[0]?.marks).toEqual([
      { bin: 2, kind: 'repaired', count: 2 },
      { bin: 2, kind: 'foreign', count: 1 },
      { bin: 2, kind: 'conntrack', count: 1 },
    ]);
    expect(lanes[0]?.bars[0]?.hasFailed).toBe(true);
    expect(binText(lanes, 2)).toBe(
      'IPv4: a sync of 4 ms (planned in 1 ms, written in 3 ms), 2 repairs, 1 external change, 1 clean-up',
    );
    expect(binText(lanes, 3)).toBe('nothing happened');
    expect(frameText(entries, lanes, frame)).toBe(
      '1 sync, 0 changes, 2 repairs, 1 external change, 1 clean-up',
    );
  });

  test('the keys go from one to the next, and stay where there is none', () => {
    const lanes = lanesOf(logged(syncAt(110), syncAt(510, { family: 'IPv6' })), frame);
    expect([
      nextBin(lanes, -1, 1),
      nextBin(lanes, 1, 1),
      nextBin(lanes, 5, 1),
      nextBin(lanes, 10, -1),
    ]).toEqual([1, 5, 5, 5]);
  });

  test('the pointer need not hit a bar exactly', () => {
    const lanes = lanesOf(logged(syncAt(310)), frame);
    expect([snapBin(lanes, 5, 2), snapBin(lanes, 6, 2), snapBin(lanes, 3, 2)]).toEqual([3, 6, 3]);
  });

  test('changes are bars only where no sync is known, as in a recording', () => {
    const changes = logged(changeAt(110), changeAt(120, { seenAt: 100 }));
    const lanes = lanesOf(changes, frame);
    expect(lanes[0]?.bars).toEqual([{ bin: 1, count: 2, slowest: changes[1]?.event, hasFailed: false }]);
    expect(binText(lanes, 1)).toBe(
      'IPv4: 2 changes, the slowest of 20 ms (planned 16 ms after it was seen, written 4 ms after that)',
    );
    const withSync = logged(changeAt(110), syncAt(510));
    expect(lanesOf(withSync, frame)[0]?.bars.map(({ bin }) => bin)).toEqual([5]);
  });

  test('where nothing is written, a change is only planned', () => {
    const { committedAt: _, ...planned } = changeAt(110);
    expect(stagesOf(planned)).toEqual({ waitMs: 0, planMs: 1, writeMs: 0, totalMs: 1 });
    expect(stagesText(planned)).toBe('planned 1 ms after it was seen');
  });

  test('changes count', () => {
    const entries = logged(changeAt(110));
    expect(frameText(entries, lanesOf(entries, frame), frame)).toBe('1 change');
  });
});

test('the stages of a bar stand above each other, and together have its height', () => {
  const bars = lanesOf(logged(syncAt(10, { ms: 6, planMs: 2, writeMs: 4, seenAt: 0 })), frameOf(100, 99, 10));
  expect(barPaths(bars[0]?.bars ?? [], 6, 100)).toEqual({
    wait: 'M6 84h5v16h-5z',
    plan: 'M6 76h5v8h-5z',
    write: 'M6 60h5v16h-5z',
    failed: '',
  });
});

test('gaps as parts of the frame', () => {
  const frame = frameOf(1000, 999, 10);
  const gaps = [
    { from: -500, to: 100 },
    { from: 500, to: 3000 },
    { from: -9, to: -5 },
  ];
  expect(gapsIn(frame, gaps)).toEqual([
    { from: 0, to: 0.1 },
    { from: 0.5, to: 1 },
  ]);
});
