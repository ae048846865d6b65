/** Connections by service port and by endpoint: read from the kernel at a scrape or for a question, and kept for a while. */
import type { Family } from '../../model/ip.ts';
import type { Clock } from '../../time/clock.ts';
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
  readonly clock: Clock;
  readonly maxSeries?: number;
}

const KEPT_MS = 30_000;
/** A reading that takes longer is not waited for: the one before it is shown, with its age. */
const LIMIT_MS = 2000;
const MAX_SERIES = 1000;

export class Connections implements Collector {
  readonly #options: ConnectionsOptions;
  readonly #byService: ConnectionSeries;
  readonly #byEndpoint: ConnectionSeries;
  /** When the reading that is shown began; unset before the first one. */
  #readAt: number | undefined;
  #running: { readonly since: number; readonly done: Promise<void> } | undefined;

  constructor(options: ConnectionsOptions) {
    const { maxSeries = MAX_SERIES } = options;
    this.#options = options;
    this.#byService = new ConnectionSeries(maxSeries, BY_SERVICE);
    this.#byEndpoint = new ConnectionSeries(maxSeries, BY_ENDPOINT);
  }

  /** Without series until the first reading is there. */
  async collect(): Promise<readonly MetricFamily[]> {
    await this.refresh();
    const age = this.ageMs;
    if (age === undefined) return [];
    return [this.#byService.collect(), this.#byEndpoint.collect(), ageMetric(age / 1000)];
  }

  /** Of the reading that is shown. */
  get ageMs(): number | undefined {
    return this.#readAt === undefined ? undefined : this.#options.clock.now() - this.#readAt;
  }

  /** What an endpoint (`10.244.1.11:8081`) got; unset where it has no series of its own. */
  ofEndpoint(family: Family, servicePort: string, endpoint: string) {
    const connections = this.#byEndpoint.valueOf(`${endpoint} ${family} ${servicePort}`);
    if (connections === undefined) return undefined;
    return { connections, countedAt: Date.now() - Math.round(this.ageMs ?? 0) };
  }

  /** Reads again what is old. Waits for that, but not for long. */
  async refresh(): Promise<void> {
    const { clock } = this.#options;
    const now = clock.now();
    if (this.#readAt !== undefined && now - this.#readAt < KEPT_MS) return;
    this.#running ??= { since: now, done: this.#read(now) };
    const { since, done } = this.#running;
    const left = since + LIMIT_MS - now;
    if (left <= 0) return;
    let cancel = (): void => {};
    const tooLate = new Promise<void>((resolve) => {
      cancel = clock.schedule(left, resolve);
    });
    await Promise.race([done, tooLate]);
    cancel();
  }

  async #read(since: number): Promise<void> {
    try {
      const readings = await this.#options.read();
      this.#byService.take(readings);
      this.#byEndpoint.take(readings);
      this.#readAt = since;
    } catch {
      // The last reading is shown again; the sync that writes the rules logs why the kernel does not answer.
    } finally {
      this.#running = undefined;
    }
  }
}

function ageMetric(seconds: number): MetricFamily {
  return {
    name: 'junction_connections_age_seconds',
    help: 'How long ago the connections of services and endpoints were read from the kernel',
    type: 'gauge',
    labelNames: [],
    samples: [{ labels: [], value: seconds }],
  };
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
  key: ({ family, protocol, servicePort }) => `${family} ${servicePort}/${protocol}`,
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

  valueOf(key: string): number | undefined {
    return this.#totals.get(key)?.value;
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
