import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseDuration, printDuration } from '../../src/config/goFormats.ts';

test.each<[string, number, string]>([
  ['0', 0, '0s'],
  ['0s', 0, '0s'],
  ['30s', 30_000, '30s'],
  ['90s', 90_000, '1m30s'],
  ['15m', 900_000, '15m0s'],
  ['24h', 86_400_000, '24h0m0s'],
  ['2h22m', 8_520_000, '2h22m0s'],
  ['1.5s', 1500, '1.5s'],
  ['1.5h', 5_400_000, '1h30m0s'],
  ['100ms', 100, '100ms'],
  ['1500us', 1.5, '1.5ms'],
  ['1µs', 1e-3, '1µs'],
  ['1ns', 1e-6, '1ns'],
  ['.5s', 500, '500ms'],
  ['1.s', 1000, '1s'],
  ['-5s', -5000, '-5s'],
  ['+5s', 5000, '5s'],
  ['1h0.25s', 3_600_250, '1h0m0.25s'],
])('%s is %d ms, and prints as %s', (text, ms, printed) => {
  expect(parseDuration(text)).toBeCloseTo(ms, 9);
  expect(printDuration(ms)).toBe(printed);
});

test.each(['', '-', '30', 's', '1d', '1 s', '1s2', '1e3s', '300000h0m0s1000000000h', 'NaN'])(
  '%j is no duration',
  (text) => {
    expect(parseDuration(text)).toBeUndefined();
  },
);

test('what is printed is read back', () => {
  fc.assert(
    fc.property(fc.integer({ min: -(10 ** 12), max: 10 ** 12 }), (micros) => {
      expect(parseDuration(printDuration(micros / 1000))).toBeCloseTo(micros / 1000, 5);
    }),
  );
});
