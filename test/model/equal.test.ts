import { expect, test } from 'vitest';
import { deepEqual } from '../../src/model/equal.ts';

test.each([
  [1, 1, true],
  [[1, { a: [2] }], [1, { a: [2] }], true],
  [{ a: 1 }, { a: 1, b: undefined }, false],
  [[1], { 0: 1 }, false],
  [null, {}, false],
])('%j and %j: %s', (a, b, expected) => expect(deepEqual(a, b)).toBe(expected));

test('a long list that many parts share is compared once', () => {
  let reads = 0;
  const list = (): unknown[] =>
    Array.from({ length: 100 }, () => ({
      get value() {
        reads++;
        return 1;
      },
    }));
  const parts = (shared: unknown): unknown => Array.from({ length: 100 }, (_, index) => ({ index, shared }));
  expect(deepEqual(parts(list()), parts(list()))).toBe(true);
  expect(reads).toBe(2 * 100);
});

test('lists of one object are not those of another', () => {
  const long = (last: number): number[] => [...Array.from({ length: 20 }, () => 0), last];
  const [a, b, c] = [long(1), long(1), long(2)];
  expect(deepEqual([a, a], [b, c])).toBe(false);
});
