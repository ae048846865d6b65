/** Latencies: buckets and percentiles. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  bucketsOf,
  bucketText,
  latenciesIn,
  latencyOf,
  percentile,
  rangeText,
  stepText,
} from '../../page/src/views/syncsLatency.ts';
import { EventLog } from '../../page/src/views/syncsLog.ts';
import { frameOf } from '../../page/src/views/syncsTimeline.ts';
import { changeAt, syncAt } from './events.ts';

const latencies = fc
  .array(fc.double({ min: 0, max: 1e5, noNaN: true }), { maxLength: 200 })
  .map((all) => all.sort((a, b) => a - b));

describe('buckets', () => {
  test('each latency is in one of them', () => {
    fc.assert(
      fc.property(latencies, (sorted) => {
        const buckets = bucketsOf(sorted);
        expect(buckets.reduce((sum, { count }) => sum + count, 0)).toBe(sorted.length);
        for (const [index, { to }] of buckets.entries())
          if (index + 1 < buckets.length) expect(to).toBe(buckets[index + 1]?.from);
      }),
    );
  });

  test('the first ones are always there, so that the drawing keeps its place', () => {
    expect(bucketsOf([]).map(({ from }) => stepText(from))).toEqual([
      '0',
      '0.2',
      '0.5',
      '1',
      '2',
      '5',
      '10',
      '20',
      '50',
      '100',
    ]);
    expect(stepText(bucketsOf([2500]).at(-1)?.from ?? 0)).toBe('2 s');
  });

  test('in words', () => {
    expect(rangeText({ from: 0, to: 0.2 })).toBe('under 0.2 ms');
    expect(rangeText({ from: 10_000, to: Number.POSITIVE_INFINITY })).toBe('10 s and more');
    expect(bucketText({ from: 2, to: 5, count: 1204 })).toBe('2 ms to 5 ms: 1,204 changes');
  });
});

describe('percentiles', () => {
  test('by nearest rank', () => {
    const sorted = Array.from({ length: 100 }, (_, index) => index + 1);
    expect([0.5, 0.9, 0.99, 1].map((share) => percentile(sorted, share))).toEqual([50, 90, 99, 100]);
    expect([percentile([7], 0.5), percentile([], 0.5)]).toEqual([7, undefined]);
  });

  test('at least that share is not above it, and it is the least such value', () => {
    const share = fc.double({ min: 0.01, max: 1, noNaN: true });
    fc.assert(
      fc.property(
        latencies.filter(({ length }) => length > 0),
        share,
        (sorted, part) => {
          const value = percentile(sorted, part) ?? Number.NaN;
          const upTo = sorted.filter((each) => each <= value).length;
          const below = sorted.filter((each) => each < value).length;
          expect(upTo).toBeGreaterThanOrEqual(part * sorted.length);
          expect(below).toBeLessThan(part * sorted.length);
        },
      ),
    );
  });
});

test('what was not written has no latency', () => {
  expect(latencyOf(changeAt(10))).toBe(5);
  expect(latencyOf(changeAt(10, { effects: [] }))).toBeUndefined();
  expect(latencyOf(changeAt(10, { refused: 'no space' }))).toBeUndefined();
  const { committedAt: _, ...planned } = changeAt(10);
  expect(latencyOf(planned)).toBeUndefined();
});

test('of changes in the frame, ascending', () => {
  const log = new EventLog();
  log.add([changeAt(150, { seenAt: 100 }), changeAt(160), syncAt(170), changeAt(5000)]);
  expect(latenciesIn(log.entries, frameOf(1000, 999, 10))).toEqual([5, 50]);
});
