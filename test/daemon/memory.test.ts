import { expect, test } from 'vitest';
import { limitMemory, MemoryReturn } from '../../src/daemon/memory.ts';
import { FakeClock } from '../time/fakeClock.ts';

function make(): { clock: FakeClock; memory: MemoryReturn; done: string[] } {
  const clock = new FakeClock();
  const done: string[] = [];
  const memory = new MemoryReturn({
    clock,
    collect: () => {
      done.push('collect');
      return Promise.resolve();
    },
    trim: () => done.push('trim'),
  });
  return { clock, memory, done };
}

test('after a full sync and some quiet, garbage is collected and free memory given back', async () => {
  const { clock, memory, done } = make();
  memory.synced(true, 0);
  await clock.advance(1000);
  memory.synced(false, 5000);
  await clock.advance(1999);
  expect(done).toEqual([]);
  await clock.advance(1);
  expect(done).toEqual(['collect']);
  await clock.advance(1000);
  expect(done).toEqual(['collect', 'collect', 'trim']);
});

test('small syncs leave it alone, and so does the end', async () => {
  const { clock, memory, done } = make();
  memory.synced(false, 3);
  await clock.advance(10_000);
  memory.synced(true, 0);
  memory.close();
  await clock.advance(10_000);
  expect(done).toEqual([]);
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
