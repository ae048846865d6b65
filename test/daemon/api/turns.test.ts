import { expect, test } from 'vitest';
import { QuestionTurns } from '../../../src/daemon/api/turns.ts';
import { systemClock } from '../../../src/time/systemClock.ts';
import { FakeClock, settle } from '../../time/fakeClock.ts';

function busy(ms: number): void {
  for (const end = performance.now() + ms; performance.now() < end; );
}

test('of several questions one works in a turn of the event loop', async () => {
  const turns = new QuestionTurns({ clock: systemClock, isSyncing: () => false });
  let loops = 0;
  const end = new AbortController();
  const count = async (): Promise<void> => {
    for (; !end.signal.aborted; loops++) await settle();
  };
  const counting = count();
  const ask = async (): Promise<void> => {
    await turns.begin();
    for (let part = 0; part < 5; part++) {
      busy(3);
      await turns.pause();
    }
  };
  await Promise.all([ask(), ask(), ask()]);
  end.abort();
  await counting;
  // Three questions of five slices each: about as many turns as slices, and not a third of them.
  expect(loops).toBeGreaterThanOrEqual(13);
});

test('work that is shorter than a slice does not pause', async () => {
  const clock = new FakeClock();
  const turns = new QuestionTurns({ clock, isSyncing: () => false });
  await turns.begin();
  await clock.advance(1);
  expect(turns.pause()).toBeUndefined();
  await clock.advance(1);
  expect(turns.pause()).toBeInstanceOf(Promise);
});

test('none works while a sync is under way, unless it takes long', async () => {
  const clock = new FakeClock();
  let isSyncing = true;
  const turns = new QuestionTurns({ clock, isSyncing: () => isSyncing });
  let answers = 0;
  const ask = (): void => void turns.begin().then(() => answers++);
  ask();
  await clock.advance(20);
  expect(answers).toBe(0);
  isSyncing = false;
  await clock.advance(1);
  expect(answers).toBe(1);
  isSyncing = true;
  ask();
  await clock.advance(99);
  expect(answers).toBe(1);
  await clock.advance(2);
  expect(answers).toBe(2);
});
