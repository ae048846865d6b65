/** How likely an endpoint is drawn, as text. The rules: golden/. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { probability } from '../../../../src/modes/iptables/rules/layouts/common.ts';

describe('1/n in ten decimals', () => {
  test.each([
    [1, '1.0000000000'],
    [2, '0.5000000000'],
    [3, '0.3333333333'],
    [6, '0.1666666667'],
    [7, '0.1428571429'],
    [64, '0.0156250000'],
    [1024, '0.0009765625'],
    // The only exact tie among pools of so many: to the even digit, where toFixed would say …813.
    [2048, '0.0004882812'],
    [100_001, '0.0000099999'],
  ])('n = %d: %s', (n, expected) => expect(probability(n, 10)).toBe(expected));

  test('everywhere but at the tie it is what toFixed says', () => {
    fc.assert(
      // More endpoints than that no service port has in this mode; 10,240 would be another tie of decimals.
      fc.property(fc.integer({ min: 1, max: 5000 }), (n) => {
        fc.pre(n !== 2048);
        expect(probability(n, 10)).toBe((1 / n).toFixed(10));
      }),
    );
  });
});

test.each([
  [2, '0.50000'],
  [3, '0.33333'],
  [6, '0.16667'],
  [7, '0.14286'],
])('n = %d in five decimals: %s', (n, expected) => expect(probability(n, 5)).toBe(expected));

test.each([2, 3, 10, 100, 1000])('one after the other, each of %d gets as much', (count) => {
  let rest = 1;
  for (let remaining = count; remaining >= 1; remaining--) {
    const taken = remaining === 1 ? rest : rest * Number(probability(remaining, 10));
    expect(taken).toBeCloseTo(1 / count, 6);
    rest -= taken;
  }
});
