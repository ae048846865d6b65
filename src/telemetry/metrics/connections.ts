/**
 * Connections by service port and by endpoint, read from the kernel when somebody asks, but not more often than is
 * worth its cost.
 */
import { type ConnectionReading, ConnectionSeries, type SeriesOf } from './connectionSeries.ts';
import type { MetricFamily } from './exposition.ts';
import type { Collector } from './instruments.ts';

export type { ConnectionReading } from './connectionSeries.ts';

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
