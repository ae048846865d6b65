/**
 * Connections by service port and by endpoint, read from the kernel when somebody asks, but not more often than is
 * worth its cost. There are at most so many series: the first come stay, the others are added up.
 */
import type { MetricFamily, Sample } from './exposition.ts';
import type { Collector } from './instruments.ts';

export interface ConnectionReading {
  readonly family: string;
  readonly servicePort: string;
  readonly protocol: string;
  readonly endpoint: string;
  readonly connections: number;
}

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

type Labels = readonly (readonly [string, string])[];

interface Sum {
  readonly labels: Labels;
  sum: number;
}

interface ServiceSum extends Sum {
  readonly endpoints: Map<string, number>;
}

interface Total {
  readonly labels: Labels;
  /** What is shown; it never falls. */
  readonly value: number;
  /** What was read last. */
  readonly last: number;
}

interface ServiceTotal extends Total {
  /** What each of its endpoints had when it was read last: one that is replaced must not hide what others got. */
  readonly endpoints: ReadonlyMap<string, number>;
}

export class Connections implements Collector {
  readonly #options: ConnectionsOptions;
  readonly #services = new Map<string, ServiceTotal>();
  readonly #endpoints = new Map<string, Total>();
  /** Of those without a series, by family. */
  readonly #otherServices = new Map<string, Total>();
  readonly #otherEndpoints = new Map<string, Total>();
  #notBefore = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;

  constructor(options: ConnectionsOptions) {
    this.#options = options;
  }

  async collect(): Promise<readonly MetricFamily[]> {
    this.#reading ??= this.#refresh().finally(() => (this.#reading = undefined));
    await this.#reading;
    return [
      family(
        'junction_service_connections_total',
        'Connections that were sent on, by service port; those of service ports without a series of their own have no labels but ip_family',
        [...this.#services.values(), ...this.#otherServices.values()],
      ),
      family(
        'junction_endpoint_connections_total',
        'Connections that an endpoint got, by service port; those without a series of their own have no labels but ip_family',
        [...this.#endpoints.values(), ...this.#otherEndpoints.values()],
      ),
    ];
  }

  async #refresh(): Promise<void> {
    const { now, read } = this.#options;
    const started = now();
    if (started < this.#notBefore) return;
    try {
      this.#take(await read());
    } catch {
      // The last reading is shown again; why the kernel does not answer is told where rules are written.
    }
    this.#notBefore = now() + Math.max(LEAST_PAUSE_MS, (now() - started) / SHARE);
  }

  #take(readings: readonly ConnectionReading[]): void {
    const services = new Map<string, ServiceSum>();
    const endpoints = new Map<string, Sum>();
    for (const { family: ipFamily, servicePort, protocol, endpoint, connections } of readings) {
      const labels = [
        ['ip_family', ipFamily],
        ['protocol', protocol],
        ['service_port', servicePort],
      ] as const;
      const key = keyOf(labels);
      const service = services.get(key) ?? { labels, sum: 0, endpoints: new Map<string, number>() };
      services.set(key, service);
      service.sum += connections;
      service.endpoints.set(endpoint, (service.endpoints.get(endpoint) ?? 0) + connections);
      add(endpoints, [['endpoint', endpoint], ...labels], connections);
    }
    this.#update(this.#services, services, this.#otherServices, countService);
    this.#update(this.#endpoints, endpoints, this.#otherEndpoints, countEndpoint);
  }

  #update<S extends Sum, T extends Total>(
    totals: Map<string, T>,
    sums: ReadonlyMap<string, S>,
    others: Map<string, Total>,
    count: (known: T | undefined, sum: S) => T,
  ): void {
    for (const key of totals.keys()) if (!sums.has(key)) totals.delete(key);
    const rest = new Map<string, Sum>();
    const most = this.#options.mostSeries ?? MOST_SERIES;
    for (const [key, sum] of sums) {
      const known = totals.get(key);
      if (known || totals.size < most) totals.set(key, count(known, sum));
      else
        add(
          rest,
          sum.labels.filter(([name]) => name === 'ip_family'),
          sum.sum,
        );
    }
    countRest(others, rest);
  }
}

function keyOf(labels: Labels): string {
  return labels.map(([, value]) => value).join(' ');
}

function add(sums: Map<string, Sum>, labels: Labels, connections: number): void {
  const key = keyOf(labels);
  const known = sums.get(key);
  if (known) known.sum += connections;
  else sums.set(key, { labels, sum: connections });
}

/** Elements that were written anew count from 0. */
function increase(before: number, now: number): number {
  return now >= before ? now - before : now;
}

function countEndpoint(known: Total | undefined, { labels, sum }: Sum): Total {
  return { labels, value: (known?.value ?? 0) + increase(known?.last ?? 0, sum), last: sum };
}

function countService(known: ServiceTotal | undefined, { labels, sum, endpoints }: ServiceSum): ServiceTotal {
  let value = known?.value ?? 0;
  for (const [endpoint, count] of endpoints) value += increase(known?.endpoints.get(endpoint) ?? 0, count);
  return { labels, value, last: sum, endpoints };
}

/** Of so many together it is not known which began anew: then they stand still once. */
function countRest(totals: Map<string, Total>, sums: ReadonlyMap<string, Sum>): void {
  for (const [key, { labels, sum }] of sums) {
    const { value, last } = totals.get(key) ?? { value: 0, last: 0 };
    totals.set(key, { labels, value: value + Math.max(0, sum - last), last: sum });
  }
}

function family(name: string, help: string, totals: readonly Total[]): MetricFamily {
  const samples = totals.map(({ labels, value }): Sample => ({ suffix: '', labels: [...labels], value }));
  return { name, help, type: 'counter', samples };
}
