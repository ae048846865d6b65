/** How much time a background task may take of one core: a share of all time, some of it saved up. */
import type { Clock } from '../../time/clock.ts';

interface ProofBudgetOptions {
  readonly clock: Clock;
  /** Of one core's time. */
  readonly share: number;
  /** What may be saved up, in milliseconds of work. */
  readonly mostSavedMs: number;
}

export class ProofBudget {
  readonly #options: ProofBudgetOptions;
  #savedMs: number;
  #countedAt: number;

  constructor(options: ProofBudgetOptions) {
    this.#options = options;
    this.#savedMs = options.mostSavedMs;
    this.#countedAt = options.clock.now();
  }

  get hasSome(): boolean {
    this.#count();
    return this.#savedMs > 0;
  }

  /** May be more than was saved: then the next work waits for longer. */
  spend(ms: number): void {
    this.#count();
    this.#savedMs -= ms;
  }

  /** Until there is some again. */
  get waitMs(): number {
    return this.hasSome ? 0 : (1 - this.#savedMs) / this.#options.share;
  }

  #count(): void {
    const { clock, share, mostSavedMs } = this.#options;
    const now = clock.now();
    this.#savedMs = Math.min(mostSavedMs, this.#savedMs + share * (now - this.#countedAt));
    this.#countedAt = now;
  }
}
