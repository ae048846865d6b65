/** Recognises that another program undoes each of our repairs, and says how long the next one should wait. */
import type { Clock } from '../time/clock.ts';

export interface Damping {
  /** Zero: repair at once. */
  readonly delayMs: number;
  /** Worth a line in the log: the fight has just begun, or the delay has grown to its limit. */
  readonly isNew: boolean;
}

interface Bout {
  /** How often in a row the object was changed right after a repair. */
  returns: number;
  repairedAt: number | undefined;
  changedAt: number;
}

/** A change so soon after a repair is taken for an answer to it. */
const ANSWER_MS = 10_000;
/** So many answers in a row are a fight. A person at a shell is slower, or gives up before. */
const FREE_RETURNS = 5;
const FIRST_DELAY_MS = 1000;
const LAST_DELAY_MS = 30_000;
const MOST_OBJECTS = 1000;

export class Fights {
  readonly #clock: Clock;
  readonly #bouts = new Map<string, Bout>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Of several objects, the one that is fought over hardest decides. */
  changed(objects: Iterable<string>): Damping {
    let worst: Damping = { delayMs: 0, isNew: false };
    for (const object of objects) {
      const damping = this.#changed(object);
      if (damping.delayMs > worst.delayMs || damping.isNew)
        worst = { delayMs: Math.max(damping.delayMs, worst.delayMs), isNew: damping.isNew || worst.isNew };
    }
    return worst;
  }

  repaired(objects: Iterable<string>): void {
    const now = this.#clock.now();
    for (const object of objects) {
      const bout = this.#bouts.get(object);
      if (bout) bout.repairedAt = now;
    }
  }

  #changed(object: string): Damping {
    const now = this.#clock.now();
    const bout = this.#bouts.get(object);
    if (!bout) {
      this.#makeRoom();
      this.#bouts.set(object, { returns: 0, repairedAt: undefined, changedAt: now });
      return { delayMs: 0, isNew: false };
    }
    bout.changedAt = now;
    // Further changes before the repair are the same round.
    if (bout.repairedAt === undefined) return { delayMs: delayOf(bout.returns), isNew: false };
    const isAnswer = now - bout.repairedAt <= ANSWER_MS;
    bout.returns = isAnswer ? bout.returns + 1 : 0;
    bout.repairedAt = undefined;
    const delayMs = delayOf(bout.returns);
    const grewToLimit = delayMs === LAST_DELAY_MS && delayOf(bout.returns - 1) < LAST_DELAY_MS;
    return { delayMs, isNew: bout.returns === FREE_RETURNS || grewToLimit };
  }

  /** The oldest goes: a fight is younger than a thousand other changes. */
  #makeRoom(): void {
    if (this.#bouts.size < MOST_OBJECTS) return;
    const [[oldest] = ['']] = [...this.#bouts].sort(([, a], [, b]) => a.changedAt - b.changedAt);
    this.#bouts.delete(oldest);
  }
}

function delayOf(returns: number): number {
  if (returns < FREE_RETURNS) return 0;
  return Math.min(LAST_DELAY_MS, FIRST_DELAY_MS * 2 ** (returns - FREE_RETURNS));
}
