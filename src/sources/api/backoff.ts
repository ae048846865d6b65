/** How long to wait before the next attempt: longer each time, and never the same on two nodes. */
import type { Clock } from '../../time/clock.ts';

/** As client-go's reflectors do, so that a cluster's API server meets the load that it knows. */
const FIRST_MS = 1600;
const MOST_MS = 30_000;
const FACTOR = 2;
const RESET_AFTER_MS = 120_000;

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
