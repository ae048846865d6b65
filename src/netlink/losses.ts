/**
 * Notifications that are missing or unreadable, for one watcher. It reads everything again, which is a lot of work: at
 * once for the first loss, and for those that follow it at most once a second, the last of them included.
 */
const PAUSE_MS = 1000;

export class Losses {
  readonly #tell: () => void;
  #timer: NodeJS.Timeout | undefined;
  #hasMore = false;

  constructor(tell: () => void) {
    this.#tell = tell;
  }

  note(): void {
    if (this.#timer) {
      this.#hasMore = true;
      return;
    }
    this.#timer = setTimeout(() => this.#pauseEnds(), PAUSE_MS).unref();
    this.#tell();
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#hasMore = false;
  }

  #pauseEnds(): void {
    this.#timer = undefined;
    if (!this.#hasMore) return;
    this.#hasMore = false;
    this.note();
  }
}
