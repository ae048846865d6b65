/** Asks for an answer, again when it is old, and again after a failure that may pass. One question at a time. */
import { retryPause } from './retry.ts';

interface RefresherOptions<T> {
  readonly ask: (signal: AbortSignal) => Promise<T>;
  readonly onAnswer: (value: T) => void;
  readonly onFailure: (error: unknown) => void;
  /** Such a failure may pass: it is asked again after a pause. */
  readonly mayPass: (error: unknown) => boolean;
}

/** Not more often than this, however many events come. */
const LEAST_PAUSE_MS = 400;
/** What takes long costs the proxy much: a tab that is open has it busy for a quarter of the time at most. */
const PAUSE_PER_ANSWER = 3;
const LONGEST_PAUSE_MS = 30_000;

export class Refresher<T> {
  readonly #options: RefresherOptions<T>;
  readonly #ended = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isAsking = false;
  #isOld = false;
  #failures = 0;

  constructor(options: RefresherOptions<T>) {
    this.#options = options;
  }

  /** What is there is old. Asked for at once, or when the pause is over. */
  touch(): void {
    this.#isOld = true;
    if (!this.#isAsking && this.#timer === undefined) void this.#ask();
  }

  /** Somebody waits: no pause. */
  now(): void {
    this.#isOld = true;
    if (!this.#isAsking) void this.#ask();
  }

  stop(): void {
    this.#ended.abort();
    clearTimeout(this.#timer);
  }

  async #ask(): Promise<void> {
    const { ask, onAnswer, onFailure, mayPass } = this.#options;
    const { signal } = this.#ended;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#isAsking = true;
    this.#isOld = false;
    let pause = LEAST_PAUSE_MS;
    const asked = Date.now();
    try {
      const value = await ask(signal);
      if (signal.aborted) return;
      pause = Math.max(pause, Math.min(LONGEST_PAUSE_MS, (Date.now() - asked) * PAUSE_PER_ANSWER));
      this.#failures = 0;
      onAnswer(value);
    } catch (error) {
      if (signal.aborted) return;
      this.#failures++;
      if (mayPass(error)) {
        this.#isOld = true;
        pause = Math.max(pause, retryPause(this.#failures));
      }
      onFailure(error);
    }
    this.#isAsking = false;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (this.#isOld) void this.#ask();
    }, pause);
  }
}
