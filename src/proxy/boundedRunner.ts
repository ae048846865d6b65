/**
 * Runs a function when asked to, but not too often; and now and then without being asked.
 *
 * Requests that come while it runs or rests fold into one. A token bucket of `burst` tokens refills by one per
 * `minInterval`, counted from the end of a run, so that with a burst of one there is always that much rest between
 * runs. What is urgent does not wait for that, but only so often in a row. A failed run is repeated after
 * `retryInterval`, and a run may say when it wants to be repeated; any run puts off the periodic one.
 */
import type { Clock } from '../time/clock.ts';

export interface BoundedRunnerOptions {
  /** Rejects when it failed. Resolves to the milliseconds after which it wants to run again, if it does. */
  readonly run: () => Promise<number | undefined>;
  readonly minIntervalMs: number;
  readonly maxIntervalMs: number;
  readonly retryIntervalMs: number;
  readonly burst?: number;
  readonly clock: Clock;
  readonly onError?: (error: unknown) => void;
}

/** Of urgent runs in a row; they come back one by one, like the others. */
const URGENT_BURST = 5;

export class BoundedRunner {
  #options: BoundedRunnerOptions;
  readonly #burst: number;
  #tokens: number;
  #urgentTokens = URGENT_BURST;
  #refilledAt: number;
  /** When to run though nobody asked. */
  #dueAt = Number.POSITIVE_INFINITY;
  #requested = false;
  #isUrgent = false;
  #running: Promise<void> | undefined;
  #started = false;
  #cancelTimer: (() => void) | undefined;

  constructor(options: BoundedRunnerOptions) {
    if (options.maxIntervalMs < options.minIntervalMs) {
      throw new Error(
        `the longest interval (${options.maxIntervalMs} ms) is shorter than the shortest (${options.minIntervalMs} ms)`,
      );
    }
    this.#options = options;
    this.#burst = options.burst ?? 1;
    this.#tokens = this.#burst;
    this.#refilledAt = options.clock.now();
  }

  start(): void {
    this.#started = true;
    this.#dueAt = this.#options.clock.now() + this.#options.maxIntervalMs;
    this.#arm();
  }

  /** Asks for a run as soon as it may be. One that is urgent comes at once, also when the last one was just now. */
  request(isUrgent = false): void {
    this.#requested = true;
    if (isUrgent) this.#isUrgent = true;
    this.#arm();
  }

  /** From the next run on. */
  setIntervals(minIntervalMs: number, retryIntervalMs: number): void {
    this.#options = { ...this.#options, minIntervalMs, retryIntervalMs };
  }

  /** No further runs; resolves when the one under way has ended. */
  async stop(): Promise<void> {
    this.#started = false;
    this.#cancelTimer?.();
    await this.#running;
  }

  #arm(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    if (!this.#started || this.#running) return;
    const now = this.#options.clock.now();
    const wanted = this.#requested ? now : this.#dueAt;
    const wait = Math.max(wanted - now, this.#waitForToken(now));
    if (wait <= 0) this.#running = this.#runOnce();
    else if (Number.isFinite(wait)) this.#cancelTimer = this.#options.clock.schedule(wait, () => this.#arm());
  }

  #waitForToken(now: number): number {
    const { minIntervalMs } = this.#options;
    if (minIntervalMs <= 0) return 0;
    const more = (now - this.#refilledAt) / minIntervalMs;
    this.#tokens = Math.min(this.#burst, this.#tokens + more);
    this.#urgentTokens = Math.min(URGENT_BURST, this.#urgentTokens + more);
    this.#refilledAt = now;
    const tokens = this.#isUrgent ? Math.max(this.#tokens, this.#urgentTokens) : this.#tokens;
    return tokens >= 1 ? 0 : Math.ceil((1 - tokens) * minIntervalMs);
  }

  async #runOnce(): Promise<void> {
    const { run, clock, maxIntervalMs, retryIntervalMs, onError } = this.#options;
    // What changes together arrives one after the other: one run takes it all.
    await Promise.resolve();
    this.#requested = false;
    if (this.#isUrgent && this.#tokens < 1) this.#urgentTokens = Math.max(0, this.#urgentTokens - 1);
    this.#isUrgent = false;
    let nextIn = maxIntervalMs;
    try {
      nextIn = Math.min((await run()) ?? maxIntervalMs, maxIntervalMs);
    } catch (error) {
      nextIn = Math.min(retryIntervalMs, maxIntervalMs);
      onError?.(error);
    } finally {
      const now = clock.now();
      this.#tokens = Math.max(0, this.#tokens - 1);
      this.#refilledAt = now;
      this.#dueAt = now + nextIn;
      this.#running = undefined;
      this.#arm();
    }
  }
}
