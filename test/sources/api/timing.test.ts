/** Waits and limits, on a clock that the test owns. */
import { describe, expect, it } from 'vitest';
import { Backoff } from '../../../src/time/wait.ts';
import { Limiter } from '../../../src/sources/api/limiter.ts';
import { readRetryAfter } from '../../../src/sources/api/failure.ts';
import { isOlder } from '../../../src/sources/api/reflector.ts';
import { wait } from '../../../src/time/wait.ts';
import { Watchdog } from '../../../src/sources/api/request.ts';
import { FakeClock } from '../../time/fakeClock.ts';

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

describe('the rate limit', () => {
  it('lets a burst through, then one after the other', async () => {
    const clock = new FakeClock();
    const limiter = new Limiter(clock, { qps: 10, burst: 3 });
    const passed: number[] = [];
    for (let index = 0; index < 6; index++) void limiter.acquire().then(() => passed.push(clock.now()));
    await clock.advance(1000);
    expect(passed).toEqual([0, 0, 0, 100, 200, 300]);
    await clock.advance(1000);
    for (let index = 0; index < 4; index++)
      void limiter.acquire().then(() => passed.push(clock.now() - 2000));
    await clock.advance(1000);
    expect(passed.slice(6)).toEqual([0, 0, 0, 100]);
  });

  it('can be switched off, and has defaults', async () => {
    const clock = new FakeClock();
    const off = new Limiter(clock, { qps: -1, burst: 1 });
    await Promise.all(Array.from({ length: 100 }, () => off.acquire()));
    const defaults = new Limiter(clock, { qps: 0, burst: 0 });
    await Promise.all(Array.from({ length: 10 }, () => defaults.acquire()));
    const eleventh = defaults.acquire();
    expect(clock.pending).toBe(1);
    await clock.advance(200);
    await eleventh;
  });
});

describe('the watchdog', () => {
  it('barks after silence, and only then', async () => {
    const clock = new FakeClock();
    let barks = 0;
    const watchdog = new Watchdog(clock, 1000, () => barks++);
    for (let index = 0; index < 10; index++) {
      await clock.advance(900);
      watchdog.touch();
    }
    expect(barks).toBe(0);
    watchdog.allow(5000);
    await clock.advance(4999);
    expect(barks).toBe(0);
    await clock.advance(1);
    expect(barks).toBe(1);
    expect(clock.pending).toBe(0);
  });

  it('can be put to rest', async () => {
    const clock = new FakeClock();
    const watchdog = new Watchdog(clock, 1000, () => expect.unreachable());
    watchdog.stop();
    await clock.advance(5000);
    expect(clock.pending).toBe(0);
  });
});

describe('waiting', () => {
  it('ends when it is called off', async () => {
    const clock = new FakeClock();
    const controller = new AbortController();
    const waiting = wait(clock, 1000, controller.signal);
    controller.abort();
    await waiting;
    await wait(clock, 1000, controller.signal);
    expect(clock.pending).toBe(0);
  });
});

describe('Retry-After', () => {
  const now = Date.parse('2026-05-01T12:00:00Z');
  it.each([
    [undefined, undefined],
    ['', undefined],
    ['soon', undefined],
    ['0', 0],
    [' 7 ', 7000],
    ['Fri, 01 May 2026 12:00:30 GMT', 30_000],
    ['Fri, 01 May 2026 11:59:00 GMT', 0],
    ['86400', 60_000],
    ['99999999999999999999', 60_000],
  ])('%j', (header, expected) => {
    expect(readRetryAfter(header, () => now)).toBe(expected);
  });
});

describe('versions', () => {
  it.each([
    ['9', '10', true],
    ['10', '9', false],
    ['10', '10', false],
    ['99999999999999999998', '99999999999999999999', true],
    ['a', 'b', false],
    ['', '1', false],
    ['007', '8', false],
  ])('%s is older than %s: %s', (one, other, expected) => {
    expect(isOlder(one, other)).toBe(expected);
  });
});
