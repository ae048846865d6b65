/** Counters, gauges and histograms. With labels, each shows nothing until a combination of them is used. */
import type { MetricFamily, MetricType, Sample } from './exposition.ts';
import { printNumber } from './number.ts';
import { type Labels, SeriesMap } from './series.ts';

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
