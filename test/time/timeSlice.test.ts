import { stat } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/time/systemClock.ts';
import { runSliced, TimeSlice } from '../../src/time/timeSlice.ts';
import { FakeClock } from './fakeClock.ts';

/** A clock whose time goes on at once. */
class WorkingClock extends FakeClock {
  #worked = 0;
  override now(): number {
    return super.now() + this.#worked;
  }
  work(ms: number): void {
    this.#worked += ms;
  }
}

describe('a time slice', () => {
  test('is due when a slice is over', () => {
    const clock = new WorkingClock();
    const timeSlice = new TimeSlice(clock, 20);
    timeSlice.begin();
    clock.work(19);
    expect(timeSlice.pause()).toBeUndefined();
    clock.work(1);
    expect(timeSlice.pause()).toBeInstanceOf(Promise);
  });

  test('counts work, not the time between', () => {
    const clock = new WorkingClock();
    const timeSlice = new TimeSlice(clock, 20);
    for (let piece = 0; piece < 4; piece++) {
      clock.work(1000);
      timeSlice.begin();
      clock.work(4);
      expect(timeSlice.pause()).toBeUndefined();
    }
    clock.work(4);
    expect(timeSlice.pause()).toBeInstanceOf(Promise);
  });
});

test('a pause is longer where others have much to do, but not much longer', async () => {
  let turns = 0;
  class BusyClock extends WorkingClock {
    override schedule(delayMs: number, callback: () => void): () => void {
      return super.schedule(delayMs, () => {
        turns++;
        this.work(5); // somebody else's
        callback();
      });
    }
  }
  const clock = new BusyClock();
  const timeSlice = new TimeSlice(clock, 20);
  clock.work(20);
  const pause = timeSlice.pause();
  await clock.advance(0);
  await pause;
  expect(turns).toBe(2);
});

test('of several works, one has a slice in each turn', async () => {
  const clock = new WorkingClock();
  const log: string[] = [];
  function* slow(name: string): Generator<void, void> {
    for (let step = 0; step < 3; step++) {
      clock.work(20);
      log.push(name);
      yield;
    }
  }
  const works = ['a', 'b', 'c'].map((name) => runSliced(slow(name), new TimeSlice(clock, 20)));
  await clock.advance(0);
  await Promise.all(works);
  expect(log.join('')).toBe('abcabcabc');
  expect(clock.pending).toBe(0);
});

test('files and sockets are read while several works are under way', async () => {
  let slices = 0;
  function* slow(): Generator<void, void> {
    for (; slices < 300; slices++) {
      for (const end = systemClock.now() + 2; systemClock.now() < end; );
      yield;
    }
  }
  const works = Array.from({ length: 3 }, () => runSliced(slow(), new TimeSlice(systemClock, 2)));
  for (let read = 0; read < 20; read++) await stat('/');
  expect(slices).toBeLessThan(300);
  slices = 300;
  await Promise.all(works);
});

test('work in steps lets others in between, if it takes long', async () => {
  const clock = new WorkingClock();
  const log: string[] = [];
  function* slow(): Generator<void, void> {
    for (let step = 1; step <= 3; step++) {
      clock.work(15);
      log.push(`step ${step}`);
      yield;
    }
  }
  clock.schedule(0, () => log.push('others'));
  const done = runSliced(slow(), new TimeSlice(clock, 20));
  await clock.advance(0);
  await done;
  expect(log).toEqual(['step 1', 'step 2', 'others', 'step 3']);
});
