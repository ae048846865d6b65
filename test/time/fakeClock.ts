/** Time that goes on when a test says so. */
import type { Clock } from '../../src/time/clock.ts';

interface Timer {
  readonly at: number;
  readonly callback: () => void;
}

export class FakeClock implements Clock {
  #now = 0;
  readonly #timers = new Set<Timer>();
  readonly #settle: () => Promise<void>;

  /** `settled` resolves when everything that is ready to run has run. */
  constructor(settled = settle) {
    this.#settle = settled;
  }

  now(): number {
    return this.#now;
  }

  schedule(delayMs: number, callback: () => void): () => void {
    const timer = { at: this.#now + delayMs, callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** When the next timer fires; infinite where there is none. */
  get soonest(): number {
    return Math.min(...Array.from(this.#timers, ({ at }) => at));
  }

  get pending(): number {
    return this.#timers.size;
  }

  /** Fires what is due on the way, in order, and lets promises settle after each. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await this.#settle();
    for (;;) {
      const next = this.#next();
      if (!next || next.at > end) break;
      this.#timers.delete(next);
      this.#now = Math.max(this.#now, next.at);
      next.callback();
      await this.#settle();
    }
    this.#now = end;
    await this.#settle();
  }

  /** To the next moment for which something is scheduled. */
  async advanceToNext(): Promise<void> {
    const next = this.#next();
    if (next === undefined) throw new Error('nothing is scheduled');
    await this.advance(Math.max(0, next.at - this.#now));
  }

  #next(): Timer | undefined {
    return [...this.#timers].sort((a, b) => a.at - b.at)[0];
  }
}

/** Lets everything that is ready to run, run. */
export function settle(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
