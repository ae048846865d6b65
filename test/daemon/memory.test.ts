import { expect, test } from 'vitest';
import { limitMemory, MemoryReturn } from '../../src/daemon/memory.ts';
import { FakeClock } from '../time/fakeClock.ts';

/** Seconds; `full` and `small` syncs, and the end. */
test.each([
  ['0 full', '2 collect, 2.5 collect, 3 trim'],
  ['0 full, 1 large', '3 collect, 3.5 collect, 4 trim'],
  ['0 small', ''],
  ['0 full, 1 end', ''],
])('memory goes back to the kernel after large work and some quiet: %s', async (story, expected) => {
  const clock = new FakeClock();
  const done: string[] = [];
  const note = (what: string): void => void done.push(`${clock.now() / 1000} ${what}`);
  const collect = async (): Promise<void> => note('collect');
  const memory = new MemoryReturn({ clock, collect, trim: () => note('trim') });
  for (const [seconds, what] of story.split(', ').map((part) => part.split(' '))) {
    await clock.advance(1000 * Number(seconds) - clock.now());
    if (what === 'end') memory.close();
    else memory.synced(what === 'full', what === 'large' ? 5000 : 3);
  }
  await clock.advance(10_000);
  expect(done.join(', ')).toBe(expected);
});

test('the real ones work here, without a warning', async () => {
  const clock = new FakeClock();
  const warnings: Error[] = [];
  const note = (warning: Error): number => warnings.push(warning);
  process.on('warning', note);
  limitMemory();
  const memory = new MemoryReturn({ clock });
  memory.synced(true, 0);
  for (let step = 0; step < 6; step++) await clock.advance(500);
  process.off('warning', note);
  expect(warnings).toEqual([]);
});
