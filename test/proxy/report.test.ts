import { expect, test } from 'vitest';
import { RetryDelay } from '../../src/proxy/report.ts';

test('what fails again and again is tried less and less often', () => {
  const retry = new RetryDelay();
  expect([retry.isDue(0), retry.remainingMs(0)]).toEqual([true, undefined]);
  expect([1, 2, 3, 4, 5, 6, 7, 8].map(() => retry.failed(0))).toEqual([
    1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000,
  ]);
  expect([retry.isDue(59_000), retry.isDue(60_000), retry.remainingMs(59_000)]).toEqual([false, true, 1000]);
  retry.succeeded();
  expect([retry.isWaiting, retry.failed(0)]).toEqual([false, 1000]);
});
