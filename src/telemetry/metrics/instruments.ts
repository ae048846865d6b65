/** Counters, gauges and histograms, and tables of them. One with labels has no samples until a label set is used. */
import {
  type LabelPair,
  type MetricFamily,
  type MetricType,
  printFamilies,
  printNumber,
  type Sample,
} from './exposition.ts';

interface InstrumentOptions<L extends string> {
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly L[];
}

/** Something that has metrics to show. */
export interface Collector {
  collect(): readonly MetricFamily[] | Promise<readonly MetricFamily[]>;
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

/** A row of a table of metrics: all but the name, which is its key. `stability` stands before the help. */
type Row<I extends Collector> = (name: string, stability: string) => I;
type Rows = Readonly<Record<string, Row<Collector>>>;
export type Instruments<T extends Rows> = { readonly [K in keyof T]: ReturnType<T[K]> };

export function counter<L extends string = never>(help: string, labels: readonly L[] = []): Row<Counter<L>> {
  return (name, stability) => new Counter({ name, help: stability + help, labels });
}

export function gauge<L extends string = never>(help: string, labels: readonly L[] = []): Row<Gauge<L>> {
  return (name, stability) => new Gauge({ name, help: stability + help, labels });
}

export function histogram<L extends string = never>(
  help: string,
  labels: readonly L[],
  buckets: readonly number[],
): Row<Histogram<L>> {
  return (name, stability) => new Histogram({ name, help: stability + help, labels, buckets });
}

/** Registers the rows of a table. Returns the instruments under the keys of the table. */
export function register<T extends Rows>(
  registry: Registry,
  rows: T,
  { prefix = '', stability = '' }: { readonly prefix?: string; readonly stability?: string } = {},
): Instruments<T> {
  const instruments = Object.entries(rows).map(([name, row]) => [
    name,
    registry.add(row(prefix + name, stability)),
  ]);
  return Object.fromEntries(instruments) as Instruments<T>;
}

/** Bounds of histograms: each the double of the one before. */
export function doubling(start: number, count: number): readonly number[] {
  return Array.from({ length: count }, (_, index) => start * 2 ** index);
}

interface Value {
  value: number;
}

abstract class Single<L extends string> implements Collector {
  protected abstract readonly type: MetricType;
  readonly #options: InstrumentOptions<L>;
  protected readonly series: SeriesMap<L, Value>;

  constructor(options: InstrumentOptions<L>) {
    this.#options = options;
    this.series = new SeriesMap<L, Value>(options.labels ?? [], () => ({ value: 0 }));
  }

  collect(): readonly MetricFamily[] {
    const samples = this.series.all().map(({ labels, state }) => ({ labels, value: state.value }));
    const { name, help, labels: labelNames = [] } = this.#options;
    return [{ name, help, type: this.type, labelNames, samples }];
  }

  /** Drops every label set. */
  reset(): void {
    this.series.clear();
  }
}

export class Counter<L extends string = never> extends Single<L> {
  protected readonly type = 'counter';

  add(labels: Labels<L>, by = 1): void {
    this.series.of(labels).value += by;
  }
}

export class Gauge<L extends string = never> extends Single<L> {
  protected readonly type = 'gauge';

  set(labels: Labels<L>, value: number): void {
    this.series.of(labels).value = value;
  }
}

interface HistogramOptions<L extends string> extends InstrumentOptions<L> {
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
    const { name, help, labels: labelNames = [] } = this.#options;
    return [{ name, help, type: 'histogram', labelNames, samples }];
  }
}

type Labels<L extends string> = Readonly<Record<L, string>>;

interface Series<T> {
  readonly labels: readonly LabelPair[];
  readonly state: T;
}

/** One state for each label set that was ever used. */
class SeriesMap<L extends string, T> {
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
    // No label of ours holds a NUL; if one did, two series would share a value.
    const key = this.#names.length === 0 ? '' : this.#names.map((name) => labels[name]).join('\0');
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
