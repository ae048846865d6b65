/** Looks at what is in the kernel: how often, and beside the syncs where a mode can do that. */
import { messageOf } from '../errors.ts';
import type { Log } from '../log/log.ts';
import type { Family } from '../model/ip.ts';
import type { LookResult } from './report.ts';
import type { Clock } from '../time/clock.ts';
import { TimeSlice } from '../time/timeSlice.ts';

/** Compares what was written with the kernel, in slices, while syncs go on. */
export type LookBeside = (timeSlice: TimeSlice) => Promise<LookResult>;

interface BesideOptions {
  readonly family: Family;
  readonly log: Log;
  readonly clock: Clock;
  readonly look: LookBeside;
  /** Called after each look, with how long it took; `undefined`: it failed. */
  readonly onEnd: (result: LookResult | undefined, milliseconds: number, cause: string) => void;
  /** Called when no look is under way any more. */
  readonly onIdle: () => void;
}

/** One look at a time; what is asked for meanwhile is one more afterwards. */
export class LooksBeside {
  readonly #options: BesideOptions;
  #isUnderWay = false;
  #next: string | undefined;
  #isClosed = false;

  constructor(options: BesideOptions) {
    this.#options = options;
  }

  get isUnderWay(): boolean {
    return this.#isUnderWay;
  }

  request(cause: string): void {
    if (this.#isUnderWay) this.#next = cause;
    else void this.#run(cause);
  }

  close(): void {
    this.#isClosed = true;
  }

  async #run(cause: string): Promise<void> {
    this.#isUnderWay = true;
    for (let now: string | undefined = cause; now !== undefined && !this.#isClosed; now = this.#next) {
      this.#next = undefined;
      await this.#look(now);
    }
    this.#isUnderWay = false;
    this.#options.onIdle();
  }

  async #look(cause: string): Promise<void> {
    const { family, log, clock, look, onEnd } = this.#options;
    const started = clock.now();
    let result: LookResult | undefined;
    try {
      const timeSlice = new TimeSlice(clock);
      await timeSlice.turn();
      result = await look(timeSlice);
    } catch (error) {
      if (this.#isClosed) return;
      const why = messageOf(error);
      log.warn('Cannot compare what is in the kernel beside syncs; reading everything back', {
        ipFamily: family,
        why,
      });
    }
    if (this.#isClosed) return;
    const milliseconds = clock.now() - started;
    log.verbose(2, 'Compared what is in the kernel', {
      ipFamily: family,
      ...result,
      milliseconds: Math.round(milliseconds),
      cause,
    });
    onEnd(result, milliseconds, cause);
  }
}

/**
 * How often the whole kernel may be read back. A look costs what the fastest of the last few took: one that waited for
 * a lock or for a processor says nothing about the next. Syncs that wrote something are no looks and cost nothing here.
 */
const KEPT = 3;

export class LookBudget {
  readonly #recentMs: number[] = [];
  #endedAt = Number.NEGATIVE_INFINITY;

  ended(now: number, lookMs: number | undefined): void {
    this.#endedAt = now;
    if (lookMs === undefined) return;
    this.#recentMs.push(lookMs);
    if (this.#recentMs.length > KEPT) this.#recentMs.shift();
  }

  /** How long the next look has to wait, if looks may take this part of the time, but wait no longer than that. */
  waitMs(now: number, share: number, mostMs: number): number {
    if (this.#recentMs.length === 0) return 0;
    const pauseMs = Math.min(mostMs, Math.min(...this.#recentMs) / share);
    return Math.max(0, this.#endedAt + pauseMs - now);
  }
}
