/**
 * How often the whole kernel may be read back. A look costs what the fastest of the last few took: one that waited for
 * a lock or for a processor says nothing about the next. Syncs that wrote something are no looks and cost nothing here.
 */
const REMEMBERED = 3;

export class LookBudget {
  readonly #recentMs: number[] = [];
  #endedAt = Number.NEGATIVE_INFINITY;

  ended(now: number, lookMs: number | undefined): void {
    this.#endedAt = now;
    if (lookMs === undefined) return;
    this.#recentMs.push(lookMs);
    if (this.#recentMs.length > REMEMBERED) this.#recentMs.shift();
  }

  /** How long the next look has to wait, if looks may take this part of the time, but wait no longer than that. */
  waitMs(now: number, share: number, mostMs: number): number {
    if (this.#recentMs.length === 0) return 0;
    const pauseMs = Math.min(mostMs, Math.min(...this.#recentMs) / share);
    return Math.max(0, this.#endedAt + pauseMs - now);
  }
}
