/**
 * Long work in short slices: between two of them everything else has its turn.
 *
 * One thread reads from the API server, answers health checks and plans ten thousand services. What computes for half
 * a second must not make the others wait for half a second.
 */
import type { Clock } from './clock.ts';

const SLICE_MS = 10;
/** A turn of the event loop that took this long was somebody's who may have more to do: a large answer is being read. */
const BUSY_TURN_MS = 3;

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
    return this.#pause(now + this.#sliceMs / 2);
  }

  /**
   * One turn for everybody; where that was long, more of them, up to half a slice. Who reads from a socket gets 64 KiB in
   * a turn: with 20 ms of work between two of them, and no more, 20 MB of EndpointSlices took seven seconds.
   */
  async #pause(until: number): Promise<void> {
    let last = this.#clock.now();
    for (let isBusy = true; isBusy; ) {
      await new Promise<void>((resolve) => {
        this.#clock.schedule(0, resolve);
      });
      const now = this.#clock.now();
      isBusy = now - last >= BUSY_TURN_MS && now < until;
      last = now;
    }
    this.begin();
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
