/**
 * Connections by service port and by endpoint, read from the kernel at each scrape, but not more often than is
 * worth its cost.
 */
import type { MetricFamily, Sample } from './exposition.ts';
import type { Collector } from './instruments.ts';

export interface ConnectionReading {
  readonly family: string;
  readonly servicePort: string;
  readonly protocol: string;
  readonly endpoint: string;
  /** What counted them: its count falls only when the element was written again. */
  readonly element: string;
  readonly connections: number;
  /** Other elements have counted these too. They are not added, but read, so that they are not added later either. */
  readonly isCountedElsewhere: boolean;
}

interface ConnectionsOptions {
  /** Throws when they cannot be read now. */
  readonly read: () => Promise<readonly ConnectionReading[]>;
  /** Milliseconds; only differences mean anything. */
  readonly now: () => number;
  readonly mostSeries?: number;
}

/** A reading may take this part of the time between two of them. */
const SHARE = 0.01;
const LEAST_PAUSE_MS = 5000;
const MOST_SERIES = 1000;

export class Connections implements Collector {
  readonly #options: ConnectionsOptions;
  readonly #series: readonly ConnectionSeries[];
  #notBefore = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;

  constructor(options: ConnectionsOptions) {
    const { mostSeries = MOST_SERIES } = options;
    this.#options = options;
    this.#series = [BY_SERVICE, BY_ENDPOINT].map((by) => new ConnectionSeries(mostSeries, by));
  }

  async collect(): Promise<readonly MetricFamily[]> {
    this.#reading ??= this.#refresh().finally(() => (this.#reading = undefined));
    await this.#reading;
    return this.#series.map((series) => series.collect());
  }

  async #refresh(): Promise<void> {
    const { now, read } = this.#options;
    const started = now();
    if (started < this.#notBefore) return;
    try {
      const readings = await read();
      for (const series of this.#series) series.take(readings);
    } catch {
      // The last reading is shown again; the sync that writes the rules logs why the kernel does not answer.
    }
    this.#notBefore = now() + Math.max(LEAST_PAUSE_MS, (now() - started) / SHARE);
  }
}

type Labels = Sample['labels'];

/** By what readings belong together. A large cluster has hundreds of thousands of them, and a thousand series. */
interface Grouping {
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
  readonly key: (reading: ConnectionReading) => string;
  readonly labels: (reading: ConnectionReading) => Labels;
}

const BY_SERVICE: Grouping = {
  name: 'junction_service_connections_total',
  help: 'Connections that were sent on, by service port; those of service ports without a series of their own have no labels but ip_family',
  labelNames: ['ip_family', 'protocol', 'service_port'],
  key: ({ family, protocol, servicePort }) => `${family} ${protocol} ${servicePort}`,
  labels: ({ family, protocol, servicePort }) => [
    ['ip_family', family],
    ['protocol', protocol],
    ['service_port', servicePort],
  ],
};

const BY_ENDPOINT: Grouping = {
  name: 'junction_endpoint_connections_total',
  help: 'Connections that an endpoint got, by service port; those without a series of their own have no labels but ip_family',
  labelNames: ['endpoint', ...BY_SERVICE.labelNames],
  key: (reading) => `${reading.endpoint} ${BY_SERVICE.key(reading)}`,
  labels: (reading) => [['endpoint', reading.endpoint], ...BY_SERVICE.labels(reading)],
};

interface Sum {
  readonly value: number;
  readonly last: number;
}

/**
 * Totals of what many elements have counted, each for itself. Elements are added, deleted and written again, so what is
 * added up is what each of them counted since the reading before. Of so many series the first ones stay; the others are
 * added up by family.
 */
class ConnectionSeries {
  readonly #most: number;
  readonly #by: Grouping;
  readonly #totals = new Map<string, Total>();
  readonly #others = new Map<string, Sum>();

  constructor(most: number, by: Grouping) {
    this.#most = most;
    this.#by = by;
  }

  take(readings: readonly ConnectionReading[]): void {
    this.#dropOthersThan(readings);
    const rest = new Map<string, number>();
    for (const reading of readings) {
      const total = this.#totalOf(reading);
      const { family, connections, isCountedElsewhere } = reading;
      if (total) total.count(reading);
      else if (!isCountedElsewhere) rest.set(family, (rest.get(family) ?? 0) + connections);
    }
    for (const total of this.#totals.values()) total.settle();
    this.#countRest(rest);
  }

  collect(): MetricFamily {
    const others = Array.from(this.#others, ([family, { value }]) => ({
      labels: [['ip_family', family]] as const,
      value,
    }));
    const samples = [...this.#totals.values(), ...others].map(({ labels, value }) => ({ labels, value }));
    const { name, help, labelNames } = this.#by;
    return { name, help, type: 'counter', labelNames, samples };
  }

  /** First, so that there is room for new ones. */
  #dropOthersThan(readings: readonly ConnectionReading[]): void {
    const unread = new Set(this.#totals.keys());
    for (const reading of readings) unread.delete(this.#by.key(reading));
    for (const key of unread) this.#totals.delete(key);
  }

  #totalOf(reading: ConnectionReading): Total | undefined {
    const key = this.#by.key(reading);
    const known = this.#totals.get(key);
    if (known || this.#totals.size >= this.#most) return known;
    const total = new Total(this.#by.labels(reading));
    this.#totals.set(key, total);
    return total;
  }

  /** Of so many together it is not known which were written again: then the sum stands still once. */
  #countRest(sums: ReadonlyMap<string, number>): void {
    for (const [family, sum] of sums) {
      const { value, last } = this.#others.get(family) ?? { value: 0, last: 0 };
      this.#others.set(family, { value: value + Math.max(0, sum - last), last: sum });
    }
  }
}

/** It never falls. */
class Total {
  readonly labels: Labels;
  value = 0;
  /** By element. */
  #before: ReadonlyMap<string, number> = new Map();
  #now = new Map<string, number>();

  constructor(labels: Labels) {
    this.labels = labels;
  }

  count({ element, connections, isCountedElsewhere }: ConnectionReading): void {
    const before = this.#now.get(element) ?? this.#before.get(element) ?? 0;
    // An element that was written again counts from 0.
    if (!isCountedElsewhere) this.value += connections >= before ? connections - before : connections;
    this.#now.set(element, connections);
  }

  settle(): void {
    this.#before = this.#now;
    this.#now = new Map();
  }
}
