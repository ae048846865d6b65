import type { MetricFamily, Sample } from './exposition.ts';
import type { Collector } from './instruments.ts';

/**
 * Connections by service port and by endpoint, read from the kernel when somebody asks, but not more often than is
 * worth its cost.
 */

export interface ConnectionsOptions {
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
  readonly #services: ConnectionSeries;
  readonly #endpoints: ConnectionSeries;
  #notBefore = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;

  constructor(options: ConnectionsOptions) {
    const { mostSeries = MOST_SERIES } = options;
    this.#options = options;
    this.#services = new ConnectionSeries(mostSeries, BY_SERVICE);
    this.#endpoints = new ConnectionSeries(mostSeries, BY_ENDPOINT);
  }

  async collect(): Promise<readonly MetricFamily[]> {
    this.#reading ??= this.#refresh().finally(() => (this.#reading = undefined));
    await this.#reading;
    return [
      family(
        'junction_service_connections_total',
        'Connections that were sent on, by service port; those of service ports without a series of their own have no labels but ip_family',
        this.#services,
      ),
      family(
        'junction_endpoint_connections_total',
        'Connections that an endpoint got, by service port; those without a series of their own have no labels but ip_family',
        this.#endpoints,
      ),
    ];
  }

  async #refresh(): Promise<void> {
    const { now, read } = this.#options;
    const started = now();
    if (started < this.#notBefore) return;
    try {
      const readings = await read();
      this.#services.take(readings);
      this.#endpoints.take(readings);
    } catch {
      // The last reading is shown again; why the kernel does not answer is told where rules are written.
    }
    this.#notBefore = now() + Math.max(LEAST_PAUSE_MS, (now() - started) / SHARE);
  }
}

const BY_SERVICE: SeriesOf = {
  key: ({ family: ipFamily, protocol, servicePort }) => `${ipFamily} ${protocol} ${servicePort}`,
  labels: ({ family: ipFamily, protocol, servicePort }) => [
    ['ip_family', ipFamily],
    ['protocol', protocol],
    ['service_port', servicePort],
  ],
};

const BY_ENDPOINT: SeriesOf = {
  key: (reading) => `${reading.endpoint} ${BY_SERVICE.key(reading)}`,
  labels: (reading) => [['endpoint', reading.endpoint], ...BY_SERVICE.labels(reading)],
};

function family(name: string, help: string, series: ConnectionSeries): MetricFamily {
  return { name, help, type: 'counter', samples: series.samples() };
}

/**
 * Totals from what many elements have counted, each for itself. Elements come, go, and are written anew, so what is
 * added up is what each of them got since it was last looked at.
 */

export interface ConnectionReading {
  readonly family: string;
  readonly servicePort: string;
  readonly protocol: string;
  readonly endpoint: string;
  /** What counted them: the same one never counts less, unless it began anew. */
  readonly element: string;
  readonly connections: number;
  /** Other elements have counted these too: they are not added, but looked at, lest they are when that changes. */
  readonly isCountedElsewhere: boolean;
}

type Labels = Sample['labels'];

/** By what readings belong together. A large cluster has hundreds of thousands of them, and a thousand series. */
export interface SeriesOf {
  readonly key: (reading: ConnectionReading) => string;
  readonly labels: (reading: ConnectionReading) => Labels;
}

/** At most so many series: the first come stay, the others are added up by family. */
export class ConnectionSeries {
  readonly #most: number;
  readonly #of: SeriesOf;
  readonly #totals = new Map<string, Total>();
  readonly #others = new Map<string, Rest>();

  constructor(most: number, of: SeriesOf) {
    this.#most = most;
    this.#of = of;
  }

  take(readings: readonly ConnectionReading[]): void {
    this.#forgetOthersThan(readings);
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

  samples(): readonly Sample[] {
    return [
      ...[...this.#totals.values()].map(({ labels, value }) => sample(labels, value)),
      ...[...this.#others].map(([family, { value }]) => sample([['ip_family', family]], value)),
    ];
  }

  /** First of all, so that there is room for those that are new. */
  #forgetOthersThan(readings: readonly ConnectionReading[]): void {
    const gone = new Set(this.#totals.keys());
    for (const reading of readings) gone.delete(this.#of.key(reading));
    for (const key of gone) this.#totals.delete(key);
  }

  #totalOf(reading: ConnectionReading): Total | undefined {
    const key = this.#of.key(reading);
    const known = this.#totals.get(key);
    if (known || this.#totals.size >= this.#most) return known;
    const total = new Total(this.#of.labels(reading));
    this.#totals.set(key, total);
    return total;
  }

  /** Of so many together it is not known which began anew: then they stand still once. */
  #countRest(sums: ReadonlyMap<string, number>): void {
    for (const [family, sum] of sums) {
      const { value, last } = this.#others.get(family) ?? { value: 0, last: 0 };
      this.#others.set(family, { value: value + Math.max(0, sum - last), last: sum });
    }
  }
}

interface Rest {
  readonly value: number;
  readonly last: number;
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
    if (!isCountedElsewhere) this.value += increase(before, connections);
    this.#now.set(element, connections);
  }

  settle(): void {
    this.#before = this.#now;
    this.#now = new Map();
  }
}

/** Elements that were written anew count from 0. */
function increase(before: number, now: number): number {
  return now >= before ? now - before : now;
}

function sample(labels: Labels, value: number): Sample {
  return { suffix: '', labels, value };
}
