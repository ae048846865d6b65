/**
 * Turns for questions: their work is cut into short slices, of which one runs in a turn of the event loop, and none while a
 * sync is under way. So a sync waits for one slice at most, however many ask.
 */
import { setImmediate as nextTurn } from 'node:timers';
import type { Clock } from '../../time/clock.ts';

interface QuestionTurnsOptions {
  readonly clock: Clock;
  readonly isSyncing: () => boolean;
}

const SLICE_MS = 2;
/** The first sync of a large cluster takes seconds; after so long, questions go on beside it, with pauses. */
const MOST_WAIT_MS = 100;
const PAUSE_MS = 5;

export class QuestionTurns {
  readonly #options: QuestionTurnsOptions;
  readonly #waiting: (() => void)[] = [];
  #isArmed = false;
  #begunAt = Number.NEGATIVE_INFINITY;
  #heldSince: number | undefined;

  constructor(options: QuestionTurnsOptions) {
    this.#options = options;
  }

  /** To be awaited before work begins. */
  begin(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#arm();
    });
  }

  /** To be called often during work. Returns a promise to await when the slice is over, `undefined` until then. */
  pause(): Promise<void> | undefined {
    return this.#options.clock.now() - this.#begunAt < SLICE_MS ? undefined : this.begin();
  }

  #arm(): void {
    if (this.#isArmed) return;
    this.#isArmed = true;
    nextTurn(() => this.#next());
  }

  #next(): void {
    const { clock, isSyncing } = this.#options;
    const now = clock.now();
    if (isSyncing()) {
      this.#heldSince ??= now;
      if (now - this.#heldSince < MOST_WAIT_MS || now - this.#begunAt < PAUSE_MS) {
        clock.schedule(1, () => this.#next());
        return;
      }
    } else this.#heldSince = undefined;
    this.#isArmed = false;
    this.#begunAt = now;
    this.#waiting.shift()?.();
    if (this.#waiting.length > 0) this.#arm();
  }
}
