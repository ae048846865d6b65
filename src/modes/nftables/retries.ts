/** At most one timer for each family, for the soonest time that somebody asked for. */
import type { Family } from '../../model/ip.ts';

interface Retry {
  readonly timer: NodeJS.Timeout;
  readonly at: number;
}

export class Retries {
  readonly #run: (family: Family) => void;
  readonly #waiting = new Map<Family, Retry>();

  constructor(run: (family: Family) => void) {
    this.#run = run;
  }

  /** It does not keep the process alive. */
  ask(family: Family, milliseconds: number): void {
    const at = performance.now() + milliseconds;
    const known = this.#waiting.get(family);
    if (known && known.at <= at) return;
    clearTimeout(known?.timer);
    const timer = setTimeout(() => {
      this.#waiting.delete(family);
      this.#run(family);
    }, milliseconds).unref();
    this.#waiting.set(family, { timer, at });
  }

  close(): void {
    for (const { timer } of this.#waiting.values()) clearTimeout(timer);
    this.#waiting.clear();
  }
}
