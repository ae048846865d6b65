/** How long the answer to a request may take to begin. */
import type { Clock } from '../../time/clock.ts';

/** Watches and streaming lists are answered before the first object is read. */
const LEAST_MS = 4000;
/** A list from etcd is read before the answer begins. */
const LEAST_LIST_MS = 15_000;
/** The API server ends a request after a minute, or says that it cannot. */
const MOST_MS = 75_000;

/**
 * A connection that was accepted and on which nothing comes is given up soon: behind a load balancer the next one may
 * reach a server that lives. If the server is only slow, each further attempt is given twice the time.
 */
export class Patience {
  readonly #clock: Clock;
  #ms = LEAST_MS;
  #sentAt = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  forAnswer(): number {
    return this.#ms;
  }

  forList(): number {
    return Math.max(this.#ms, LEAST_LIST_MS);
  }

  sent(): void {
    this.#sentAt = this.#clock.now();
  }

  /** Twice the time that it took will do the next time. */
  answered(): void {
    this.#ms = bounded(2 * (this.#clock.now() - this.#sentAt));
  }

  grow(): void {
    this.#ms = bounded(2 * this.#ms);
  }
}

function bounded(ms: number): number {
  return Math.min(Math.max(ms, LEAST_MS), MOST_MS);
}
