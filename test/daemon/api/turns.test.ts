import { expect, test } from 'vitest';
import { QuestionTurns } from '../../../src/daemon/api/turns.ts';
import { systemClock } from '../../../src/time/systemClock.ts';
import { settle } from '../../time/fakeClock.ts';

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
  const turns = new QuestionTurns({ clock: systemClock, isSyncing: () => false });
  await turns.begin();
  expect(turns.pause()).toBeUndefined();
});

test('none works while a sync is under way, unless it takes long', async () => {
  let isSyncing = true;
  const turns = new QuestionTurns({ clock: systemClock, isSyncing: () => isSyncing });
  const started = performance.now();
  let answeredAt: number | undefined;
  const first = turns.begin().then(() => {
    answeredAt = performance.now();
  });
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(answeredAt).toBeUndefined();
  isSyncing = false;
  await first;
  isSyncing = true;
  await turns.begin();
  expect(performance.now() - started).toBeGreaterThan(100);
});
