/** How many requests may go out, as client-go limits them. */
import type { Clock } from '../../time/clock.ts';
import { wait } from '../../time/wait.ts';

export interface RateLimit {
  /** Below 0: no limit. 0: the default, 5. */
  readonly qps: number;
  /** 0: the default, 10. */
  readonly burst: number;
}

const DEFAULT_LIMIT: RateLimit = { qps: 5, burst: 10 };

/** Client-side rate limit: a bucket that holds `burst` requests and fills with `qps` a second. */
export class Limiter {
  readonly #clock: Clock;
  readonly #msPerRequest: number;
  readonly #burst: number;
  /** When the bucket is, or will be, full. */
  #fullAt: number;

  constructor(clock: Clock, { qps, burst }: RateLimit = DEFAULT_LIMIT) {
    this.#clock = clock;
    this.#msPerRequest = qps < 0 ? 0 : 1000 / (qps || DEFAULT_LIMIT.qps);
    this.#burst = burst || DEFAULT_LIMIT.burst;
    this.#fullAt = clock.now();
  }

  /** Resolves when a request may go out. */
  async acquire(signal?: AbortSignal): Promise<void> {
    const now = this.#clock.now();
    this.#fullAt = Math.max(this.#fullAt, now) + this.#msPerRequest;
    const delay = this.#fullAt - now - this.#burst * this.#msPerRequest;
    if (delay > 0) await wait(this.#clock, delay, signal);
  }
}
