import { describe, expect, it } from 'vitest';
import { Backoff, wait } from '../../src/time/wait.ts';
import { FakeClock } from './fakeClock.ts';

describe('back-off', () => {
  it.each([
    [0, [800, 1600, 3200, 6400, 12_800, 15_000, 15_000]],
    [1, [1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000]],
  ])('doubles up to a limit (chance %d)', (chance, expected) => {
    const backoff = new Backoff(new FakeClock(), () => chance);
    expect(expected.map(() => backoff.next())).toEqual(expected);
  });

  it('starts over after two good minutes', async () => {
    const clock = new FakeClock();
    const backoff = new Backoff(clock, () => 0);
    backoff.next();
    await clock.advance(backoff.next() + 110_000);
    expect(backoff.next()).toBe(3200);
    await clock.advance(3200 + 120_001);
    expect(backoff.next()).toBe(800);
  });
});

it('a wait ends when it is called off', async () => {
  const clock = new FakeClock();
  const controller = new AbortController();
  const waiting = wait(clock, 1000, controller.signal);
  controller.abort();
  await waiting;
  await wait(clock, 1000, controller.signal);
  expect(clock.pending).toBe(0);
});
