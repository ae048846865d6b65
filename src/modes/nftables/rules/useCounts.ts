/** Things that come with the first who uses them, and may go some time after the last. */

interface Used<T> {
  readonly key: string;
  readonly thing: T;
  uses: number;
  /** Since when nobody uses it. */
  idleSince: number | undefined;
}

export class UseCounts<T> {
  readonly #used = new Map<string, Used<T>>();
  readonly #idle = new Set<Used<T>>();
  /** While it is the same, so are the things. */
  version = 0;

  /** All that `before` has, used by nobody. */
  takeOver(before: UseCounts<T>, now: number): void {
    for (const [key, { thing }] of before.#used) {
      this.add(key, thing);
      this.remove(key, now);
    }
  }

  add(key: string, thing: T): void {
    const known = this.#used.get(key);
    if (!known) {
      this.#used.set(key, { key, thing, uses: 1, idleSince: undefined });
      this.version++;
      return;
    }
    known.uses++;
    known.idleSince = undefined;
    this.#idle.delete(known);
  }

  remove(key: string, now: number): void {
    const known = this.#used.get(key);
    if (!known || --known.uses > 0) return;
    known.idleSince = now;
    this.#idle.add(known);
  }

  /** Forgets what nobody has used since then. */
  retire(since: number): void {
    for (const used of this.#idle) {
      if (used.idleSince === undefined || used.idleSince > since) return; // they became idle in this order
      this.#used.delete(used.key);
      this.#idle.delete(used);
      this.version++;
    }
  }

  /** Of what has been idle longest. */
  get idleSince(): number | undefined {
    const [first] = this.#idle;
    return first?.idleSince;
  }

  *values(): Generator<T> {
    for (const { thing } of this.#used.values()) yield thing;
  }
}
