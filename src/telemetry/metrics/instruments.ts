import {
  type MetricFamily,
  type MetricType,
  type Sample,
  printNumber,
  type LabelPair,
  printFamilies,
} from './exposition.ts';

/** Counters, gauges and histograms. With labels, each shows nothing until a combination of them is used. */

export interface InstrumentOptions<L extends string> {
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly L[];
}

/** Something that has metrics to show. */
export interface Collector {
  collect(): readonly MetricFamily[] | Promise<readonly MetricFamily[]>;
}

interface Value {
  value: number;
}

class Single<L extends string> implements Collector {
  readonly #options: InstrumentOptions<L>;
  readonly #type: MetricType;
  protected readonly series: SeriesMap<L, Value>;

  constructor(type: MetricType, options: InstrumentOptions<L>) {
    this.#type = type;
    this.#options = options;
    this.series = new SeriesMap<L, Value>(options.labels ?? [], () => ({ value: 0 }));
  }

  collect(): readonly MetricFamily[] {
    const samples = this.series
      .all()
      .map(({ labels, state }): Sample => ({ suffix: '', labels, value: state.value }));
    return [{ name: this.#options.name, help: this.#options.help, type: this.#type, samples }];
  }

  /** Forgets every combination of labels. */
  reset(): void {
    this.series.clear();
  }
}

export class Counter<L extends string = never> extends Single<L> {
  constructor(options: InstrumentOptions<L>) {
    super('counter', options);
  }

  add(labels: Labels<L>, by = 1): void {
    this.series.of(labels).value += by;
  }
}

export class Gauge<L extends string = never> extends Single<L> {
  constructor(options: InstrumentOptions<L>) {
    super('gauge', options);
  }

  set(labels: Labels<L>, value: number): void {
    this.series.of(labels).value = value;
  }
}

export interface HistogramOptions<L extends string> extends InstrumentOptions<L> {
  /** Upper bounds, ascending, without infinity. */
  readonly buckets: readonly number[];
}

interface Distribution {
  /** Of each bucket by itself; the last is infinity's. */
  readonly counts: number[];
  sum: number;
}

export class Histogram<L extends string = never> implements Collector {
  readonly #options: HistogramOptions<L>;
  readonly #bounds: readonly string[];
  readonly #series: SeriesMap<L, Distribution>;

  constructor(options: HistogramOptions<L>) {
    this.#options = options;
    this.#bounds = [...options.buckets, Number.POSITIVE_INFINITY].map(printNumber);
    this.#series = new SeriesMap<L, Distribution>(options.labels ?? [], () => ({
      counts: this.#bounds.map(() => 0),
      sum: 0,
    }));
  }

  observe(labels: Labels<L>, value: number): void {
    const distribution = this.#series.of(labels);
    const found = this.#options.buckets.findIndex((bound) => value <= bound);
    const bucket = found < 0 ? this.#options.buckets.length : found;
    distribution.counts[bucket] = (distribution.counts[bucket] ?? 0) + 1;
    distribution.sum += value;
  }

  collect(): readonly MetricFamily[] {
    const samples = this.#series.all().flatMap(({ labels, state }): readonly Sample[] => {
      let total = 0;
      const buckets = this.#bounds.map((bound, index): Sample => {
        total += state.counts[index] ?? 0;
        return { suffix: '_bucket', labels: [...labels, ['le', bound]], value: total };
      });
      return [
        ...buckets,
        { suffix: '_sum', labels, value: state.sum },
        { suffix: '_count', labels, value: total },
      ];
    });
    return [{ name: this.#options.name, help: this.#options.help, type: 'histogram', samples }];
  }
}

/** One value of some kind for each combination of labels that was ever used. */

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

/** Everything that is shown at one address. */

export class Registry {
  readonly #collectors: Collector[] = [];

  add<T extends Collector>(collector: T): T {
    this.#collectors.push(collector);
    return collector;
  }

  async collect(): Promise<readonly MetricFamily[]> {
    const families: MetricFamily[] = [];
    for (const collector of this.#collectors) families.push(...(await collector.collect()));
    return families;
  }

  async print(): Promise<string> {
    return printFamilies(await this.collect());
  }
}

/** The bounds of histograms, in seconds. */

function doubling(start: number, count: number): readonly number[] {
  return Array.from({ length: count }, (_, index) => start * 2 ** index);
}

function steps(start: number, step: number, count: number): readonly number[] {
  return Array.from({ length: count }, (_, index) => start + step * index);
}

/** 1 ms to 16 s. */
export const SYNC_BUCKETS = doubling(0.001, 15);

/** 0.1 ms to 13 s: most of Junction's syncs would all fall into the first bucket of the others. */
export const FINE_BUCKETS = doubling(0.0001, 18);

/** A quarter of a second to five minutes. */
export const NETWORK_PROGRAMMING_BUCKETS: readonly number[] = [
  0.25,
  0.5,
  ...steps(1, 1, 59),
  ...steps(60, 5, 12),
  ...steps(120, 30, 7),
];

export const GC_BUCKETS: readonly number[] = [0.001, 0.01, 0.1, 1, 2, 5];
