/** What of a family's work is open: syncs that were asked for, and what a sync begins beside the next ones. */
import { messageOf } from '../errors.ts';
import type { Family } from '../model/ip.ts';

/** Something that a sync begins, and that no other sync waits for. */
export interface SideWork {
  /** `the canary is being set up` */
  readonly what: string;
  /** Never rejects. */
  readonly done: Promise<unknown>;
}

interface OpenWorkOptions {
  readonly family: Family;
  /** Marks the changes of other programs that are not repaired yet. */
  readonly repairs: () => () => readonly string[];
  /** Work has ended. */
  readonly onApplied: () => void;
}

export class OpenWork {
  readonly #options: OpenWorkOptions;
  /** How many syncs were asked for, and how many of them the last one that is written was for; none: -1. */
  #asked = 0;
  #written = -1;
  /** The same with the side work. */
  #applied = -1;
  readonly #sideWork = new Set<SideWork>();
  #lastError: unknown;

  constructor(options: OpenWorkOptions) {
    this.#options = options;
  }

  get asked(): number {
    return this.#asked;
  }

  ask(): void {
    this.#asked++;
  }

  failed(error: unknown): void {
    this.#lastError = error;
  }

  /** A sync has ended, perhaps with more to write. */
  synced(sideWork: readonly SideWork[]): void {
    this.#lastError = undefined;
    for (const each of sideWork) {
      this.#sideWork.add(each);
      void each.done.then(() => {
        this.#sideWork.delete(each);
        this.#options.onApplied();
      });
    }
  }

  /** The kernel has everything that these were for. */
  written(asked: number): void {
    this.#written = asked;
    void Promise.all(Array.from(this.#sideWork, ({ done }) => done)).then(() => {
      this.#applied = Math.max(this.#applied, asked);
      this.#options.onApplied();
    });
  }

  /** Marks what is open now. The result says later what of it still is, a sentence each. */
  mark(): () => readonly string[] {
    const { family } = this.#options;
    const repairs = this.#options.repairs();
    const asked = this.#asked;
    return () => [...repairs(), ...this.#until(asked).map((what) => `${family}: ${what}`)];
  }

  /** Of the syncs that were asked for until then. */
  #until(asked: number): readonly string[] {
    if (this.#applied >= asked) return [];
    if (this.#written >= asked) return Array.from(this.#sideWork, ({ what }) => what);
    const what = this.#written < 0 ? 'the first rules are not written yet' : 'changes are not written yet';
    const isTold = this.#lastError === undefined;
    return [isTold ? what : `${what}; the last sync failed: ${messageOf(this.#lastError)}`];
  }
}
