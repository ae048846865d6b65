/**
 * One copy of each value that many objects repeat: namespaces, node names, zones, lists of ports.
 *
 * Bounded: a cluster that makes up new names all the time gives up sharing, not memory.
 */
const MOST_VALUES = 50_000;
/** Longer ones are rarely repeated. */
const LONGEST = 300;

export class Interner {
  readonly #most: number;
  readonly #texts = new Map<string, string>();
  readonly #lists = new Map<string, readonly unknown[]>();

  constructor(most = MOST_VALUES) {
    this.#most = most;
  }

  text(value: string): string {
    if (value.length > LONGEST) return value;
    const known = this.#texts.get(value);
    if (known !== undefined) return known;
    this.#makeRoom(this.#texts);
    this.#texts.set(value, value);
    return value;
  }

  /** Two lists with one `id` have the same content. */
  list<T>(id: string, value: readonly T[]): readonly T[] {
    if (id.length > LONGEST) return value;
    const known = this.#lists.get(id);
    if (known !== undefined) return known as readonly T[];
    this.#makeRoom(this.#lists);
    this.#lists.set(id, value);
    return value;
  }

  /** Starting over forgets what went out of use; what is in use comes back with the next objects. */
  #makeRoom(values: Map<string, unknown>): void {
    if (values.size >= this.#most) values.clear();
  }
}
