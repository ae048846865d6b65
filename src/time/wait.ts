/** The ways to wait before the next attempt. Half of a delay is chance, so that no two nodes ask at the same time. */
import type { Clock } from './clock.ts';

/** Resolves after the delay, or as soon as the signal aborts: the caller looks at the signal next anyway. */
export function wait(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) {
      resolve();
      return;
    }
    const end = (): void => {
      cancel();
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const cancel = clock.schedule(delayMs, end);
    signal?.addEventListener('abort', end);
  });
}

/** As client-go's reflectors do, so that a cluster's API server meets the load that it knows. */
const FIRST_MS = 1600;
const MOST_MS = 30_000;
const FACTOR = 2;
const RESET_AFTER_MS = 120_000;

/** How long to wait before the next attempt: longer each time. */
export class Backoff {
  readonly #clock: Clock;
  readonly #random: () => number;
  #step = FIRST_MS;
  #idleSince = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, random: () => number) {
    this.#clock = clock;
    this.#random = random;
  }

  /** Milliseconds, counted from now: half of the step is certain, half is chance. */
  next(): number {
    const now = this.#clock.now();
    if (this.#isRested(now)) this.#step = FIRST_MS;
    const delay = this.#step * (0.5 + this.#random() / 2);
    this.#step = Math.min(this.#step * FACTOR, MOST_MS);
    this.#idleSince = now + delay;
    return delay;
  }

  /** Whether one attempt may be made without a wait: once, until two good minutes have passed or `reset`. */
  takeFree(): boolean {
    const now = this.#clock.now();
    if (!this.#isRested(now)) return false;
    this.#step = FIRST_MS;
    this.#idleSince = now;
    return true;
  }

  reset(): void {
    this.#idleSince = Number.NEGATIVE_INFINITY;
  }

  #isRested(now: number): boolean {
    return now - this.#idleSince > RESET_AFTER_MS;
  }
}
