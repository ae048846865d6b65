/**
 * Long work in short slices: between two of them everything else has its turn.
 *
 * One thread reads from the API server, answers health checks and plans ten thousand services. What computes for half
 * a second must not make the others wait for half a second.
 */
import type { Clock } from './clock.ts';

const SLICE_MS = 10;
/** A turn of the event loop that took this long was of work that may go on: a large answer is being read. */
const BUSY_TURN_MS = 3;

/** Of one clock: one slice in a turn of the event loop, however many works are under way, so that nobody waits for all of theirs. */
class Turns {
  readonly #clock: Clock;
  readonly #waiting: (() => void)[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  next(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#waiting.push(resolve) === 1) this.#schedule();
    });
  }

  #schedule(): void {
    this.#clock.schedule(0, () => {
      const resolve = this.#waiting.shift();
      if (this.#waiting.length > 0) this.#schedule();
      resolve?.();
    });
  }
}

const TURNS = new WeakMap<Clock, Turns>();

function turnsOf(clock: Clock): Turns {
  const known = TURNS.get(clock);
  if (known) return known;
  const turns = new Turns(clock);
  TURNS.set(clock, turns);
  return turns;
}

export class TimeSlice {
  readonly #clock: Clock;
  readonly #turns: Turns;
  readonly #sliceMs: number;
  /** Since the last pause. */
  #workedMs = 0;
  #countedFrom: number;

  constructor(clock: Clock, sliceMs = SLICE_MS) {
    this.#clock = clock;
    this.#turns = turnsOf(clock);
    this.#sliceMs = sliceMs;
    this.#countedFrom = clock.now();
  }

  /** Work begins now; the time before it was not spent on it. */
  begin(): void {
    this.#countedFrom = this.#clock.now();
  }

  /** To be awaited before work begins that nobody waits for: where several begin at one time, each has a turn of its own. */
  async turn(): Promise<void> {
    await this.#turns.next();
    this.#workedMs = 0;
    this.begin();
  }

  /** To be called often during work. Returns a promise to await when the slice is over, `undefined` until then. */
  pause(): Promise<void> | undefined {
    const now = this.#clock.now();
    this.#workedMs += now - this.#countedFrom;
    this.#countedFrom = now;
    if (this.#workedMs < this.#sliceMs) return undefined;
    this.#workedMs = 0;
    return this.#yield(now + this.#sliceMs / 2);
  }

  /**
   * One turn of the event loop; where that was long, more of them, up to half a slice. A socket's reader gets 64 KiB in
   * a turn: with 20 ms of work between two of them, and no more, 20 MB of EndpointSlices took seven seconds.
   */
  async #yield(until: number): Promise<void> {
    let last = this.#clock.now();
    for (let isBusy = true; isBusy; ) {
      await this.#turns.next();
      const now = this.#clock.now();
      isBusy = now - last >= BUSY_TURN_MS && now < until;
      last = now;
    }
    this.begin();
  }
}

/**
 * Runs all steps, with pauses; it goes on with the slice that has begun. `perLook`: after how many steps it looks at the
 * clock, which on some machines takes as long as a short step.
 */
export async function runSliced<T>(
  steps: Generator<unknown, T>,
  timeSlice: TimeSlice | undefined,
  perLook = 1,
): Promise<T> {
  for (let count = 1; ; count++) {
    const step = steps.next();
    if (step.done) return step.value;
    const pause = count % perLook === 0 ? timeSlice?.pause() : undefined;
    if (pause) await pause;
  }
}

export async function forEachSliced<T>(
  items: Iterable<T>,
  work: (item: T) => void | Promise<void>,
  timeSlice: TimeSlice | undefined,
  perLook = 1,
): Promise<void> {
  timeSlice?.begin();
  let count = 0;
  for (const item of items) {
    const waiting = work(item);
    if (waiting) {
      await waiting;
      timeSlice?.begin();
    }
    const pause = ++count % perLook === 0 ? timeSlice?.pause() : undefined;
    if (pause) await pause;
  }
}

/** Runs all steps without a pause. */
export function runToEnd<T>(steps: Generator<unknown, T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}
