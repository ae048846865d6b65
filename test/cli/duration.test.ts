import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseDuration } from '../../src/cli/duration.ts';

describe('durations as Go writes them, in milliseconds', () => {
  test.each([
    ['0', 0],
    ['0s', 0],
    ['30s', 30_000],
    ['1m30s', 90_000],
    ['15m0s', 900_000],
    ['2h22m', 8_520_000],
    ['1.5h', 5_400_000],
    ['.5s', 500],
    ['1.s', 1000],
    ['100ms', 100],
    ['250us', 0.25],
    ['250µs', 0.25],
    ['250μs', 0.25],
    ['1h1m1s1ms', 3_661_001],
    ['+5s', 5000],
    ['-5s', -5000],
    ['-0', -0 + 0],
  ])('%s: %d', (text, expected) => expect(parseDuration(text)).toBeCloseTo(expected, 6));

  test.each([
    '',
    '-',
    '+',
    '30',
    '1.5',
    's',
    '5 s',
    ' 5s',
    '5s ',
    '5x',
    '1d',
    '1e3s',
    '0x1s',
    '.s',
    '1..5s',
    '--5s',
    '5S',
  ])('%j is none', (text) => expect(parseDuration(text)).toBeUndefined());

  test('hours, minutes and seconds add up', () => {
    fc.assert(
      fc.property(fc.nat(1000), fc.nat(59), fc.nat(59), (hours, minutes, seconds) => {
        expect(parseDuration(`${hours}h${minutes}m${seconds}s`)).toBe(
          ((hours * 60 + minutes) * 60 + seconds) * 1000,
        );
      }),
    );
  });
});
