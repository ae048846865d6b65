/**
 * Long work in short slices: between two of them everything else has its turn.
 *
 * One thread reads from the API server, answers health checks and plans ten thousand services. What computes for half
 * a second must not make the others wait for half a second.
 */
import type { Clock } from './clock.ts';

const SLICE_MS = 20;

export class Breath {
  readonly #clock: Clock;
  readonly #sliceMs: number;
  /** Since the last pause. */
  #workedMs = 0;
  #countedFrom: number;

  constructor(clock: Clock, sliceMs = SLICE_MS) {
    this.#clock = clock;
    this.#sliceMs = sliceMs;
    this.#countedFrom = clock.now();
  }

  /** Work begins now; the time before it was not spent on it. */
  begin(): void {
    this.#countedFrom = this.#clock.now();
  }

  /** To be asked often during work. Something to wait for when a slice is over; nothing until then. */
  take(): Promise<void> | undefined {
    const now = this.#clock.now();
    this.#workedMs += now - this.#countedFrom;
    this.#countedFrom = now;
    if (this.#workedMs < this.#sliceMs) return undefined;
    this.#workedMs = 0;
    return new Promise((resolve) => {
      this.#clock.schedule(0, () => {
        this.begin();
        resolve();
      });
    });
  }
}

/** Takes the steps of some work, with breath between them. */
export async function unhurried<T>(steps: Generator<unknown, T>, breath: Breath): Promise<T> {
  breath.begin();
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    const pause = breath.take();
    if (pause) await pause;
  }
}

/** Takes them all at once. */
export function atOnce<T>(steps: Generator<unknown, T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}
