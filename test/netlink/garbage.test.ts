import { getHeapStatistics } from 'node:v8';
import { describe, expect, test } from 'vitest';
import { Garbage } from '../../src/netlink/worker/garbage.ts';

const MIB = 1 << 20;

describe('garbage of a thread that rests', () => {
  test.each([
    ['after work that left some', 5 * MIB, 1],
    ['not after work that left next to nothing', 0.5 * MIB, 0],
  ])('is collected: %s', (_, left, expected) => {
    let bytes = 3 * MIB;
    let collections = 0;
    const garbage = new Garbage(
      () => bytes,
      () => {
        collections++;
        bytes = 3 * MIB;
      },
    );
    expect(garbage.mayBeDue).toBe(false);
    garbage.worked();
    expect(garbage.mayBeDue).toBe(true);
    bytes += left;
    garbage.rested();
    expect([collections, garbage.mayBeDue]).toEqual([expected, false]);
    garbage.worked();
    garbage.rested();
    expect(collections).toBe(expected);
  });

  test('what lives longer is not garbage the next time', () => {
    let bytes = 3 * MIB;
    let collections = 0;
    const garbage = new Garbage(
      () => bytes,
      () => void collections++,
    );
    bytes += 5 * MIB;
    for (let rests = 0; rests < 3; rests++) garbage.rested();
    expect(collections).toBe(1);
  });

  test('V8 has less of it afterwards', () => {
    const garbage = new Garbage();
    let kept: number[][] = [];
    for (let index = 0; index < 200_000; index++) kept.push([index, index + 1, index + 2, index + 3]);
    const before = getHeapStatistics().used_heap_size;
    expect(kept).toHaveLength(200_000);
    kept = [];
    garbage.rested();
    expect(getHeapStatistics().used_heap_size).toBeLessThan(before - 8 * MIB);
  });
});
