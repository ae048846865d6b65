/** One value of some kind for each combination of labels that was ever used. */
import type { LabelPair } from './exposition.ts';

export type Labels<L extends string> = Readonly<Record<L, string>>;

interface Series<T> {
  readonly labels: readonly LabelPair[];
  readonly state: T;
}

export class SeriesMap<L extends string, T> {
  readonly #names: readonly L[];
  readonly #create: () => T;
  readonly #series = new Map<string, Series<T>>();

  /** Without labels there is one series, from the start. */
  constructor(names: readonly L[], create: () => T) {
    this.#names = [...names].sort();
    this.#create = create;
    if (names.length === 0) this.#series.set('', { labels: [], state: create() });
  }

  of(labels: Labels<L>): T {
    // No label of ours holds a NUL, and if one did, two series would share a value: no harm to anybody else.
    const key = this.#names.map((name) => labels[name]).join('\0');
    let series = this.#series.get(key);
    if (!series) {
      series = { labels: this.#names.map((name) => [name, labels[name]]), state: this.#create() };
      this.#series.set(key, series);
    }
    return series.state;
  }

  clear(): void {
    this.#series.clear();
  }

  /** Sorted by label values. */
  all(): readonly Series<T>[] {
    return [...this.#series].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, series]) => series);
  }
}
