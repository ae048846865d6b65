/** Runs a walk in slices, and awaits what it reads. */
import { systemClock } from '../time/systemClock.ts';
import { TimeSlice } from '../time/timeSlice.ts';
import type { Steps } from './kernelRules.ts';

/** A sync does not wait longer for a walk. */
const SLICE_MS = 2;
const STEPS_PER_LOOK = 16;

export async function runSteps<T>(steps: Steps<T>): Promise<T> {
  const timeSlice = new TimeSlice(systemClock, SLICE_MS);
  for (let count = 1; ; count++) {
    const step = steps.next();
    if (step.done) return step.value;
    if (step.value) {
      await step.value;
      timeSlice.begin();
    } else if (count % STEPS_PER_LOOK === 0) await timeSlice.pause();
  }
}
