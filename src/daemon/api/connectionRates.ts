/** Connections a second by service and by endpoint, from two readings of what the kernel has counted. */
import type { EndpointConnections } from '../../explain/subject.ts';
import type { ObjectKey } from '../../model/objects.ts';
import { type ServicePortId, serviceOfPortId } from '../../model/serviceTracker.ts';
import type { ConnectionReading } from '../../telemetry/metrics/connections.ts';
import type { Clock } from '../../time/clock.ts';
import { forEachSliced, TimeSlice } from '../../time/timeSlice.ts';

interface ConnectionRatesOptions {
  /** Rejects where they cannot be read now. */
  readonly read: () => Promise<readonly ConnectionReading[]>;
  readonly clock: Clock;
}

/** A reading may take this part of the time between two of them. */
const SHARE = 0.01;
const LEAST_PAUSE_MS = 5000;
/** Of two readings further apart, the rate says nothing about now; nor does one that is older. */
const LONGEST_MS = 120_000;
/** After so many readings the clock is looked at; a large cluster has 300,000. */
const PER_LOOK = 64;

interface Counts {
  readonly at: number;
  readonly byService: ReadonlyMap<ObjectKey, number>;
  readonly byEndpoint: ReadonlyMap<string, number>;
}

export class ConnectionRates {
  readonly #options: ConnectionRatesOptions;
  readonly #timeSlice: TimeSlice;
  #last: Counts | undefined;
  /** Of those that got some. */
  #rates: ReadonlyMap<ObjectKey, number> = new Map();
  #endpointRates: ReadonlyMap<string, number> = new Map();
  /** Services whose rate is another since it was last asked which. */
  readonly #changed = new Set<ObjectKey>();
  #notBefore = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;

  constructor(options: ConnectionRatesOptions) {
    this.#options = options;
    this.#timeSlice = new TimeSlice(options.clock, 2);
  }

  /** Somebody is interested: what is old is read again, in its own time. */
  refresh(): Promise<void> {
    const { clock } = this.#options;
    if (this.#last && clock.now() - this.#last.at > LONGEST_MS) {
      this.#endpointRates = new Map();
      this.#replace(new Map());
    }
    if (!this.#reading && clock.now() >= this.#notBefore)
      this.#reading = this.#read().finally(() => (this.#reading = undefined));
    return this.#reading ?? Promise.resolve();
  }

  /** `undefined`: none, or it is not known yet. */
  of(service: ObjectKey): number | undefined {
    return this.#rates.get(service);
  }

  ofEndpoint(servicePort: ServicePortId, endpoint: string): EndpointConnections | undefined {
    const key = endpointKey(servicePort, endpoint);
    const connections = this.#last?.byEndpoint.get(key);
    const rate = this.#endpointRates.get(key);
    return connections === undefined ? undefined : { connections, ...(rate !== undefined && { rate }) };
  }

  takeChanged(): readonly ObjectKey[] {
    const changed = [...this.#changed];
    this.#changed.clear();
    return changed;
  }

  async #read(): Promise<void> {
    const { read, clock } = this.#options;
    const started = clock.now();
    try {
      await this.#take(await read(), started);
    } catch {
      // The sync that writes the rules logs why the kernel does not answer.
      this.#last = undefined;
    }
    this.#notBefore = clock.now() + Math.max(LEAST_PAUSE_MS, (clock.now() - started) / SHARE);
  }

  async #take(readings: readonly ConnectionReading[], at: number): Promise<void> {
    const byService = new Map<ObjectKey, number>();
    const byEndpoint = new Map<string, number>();
    await forEachSliced(
      readings,
      ({ servicePort, protocol, endpoint, connections, isCountedElsewhere }) => {
        if (isCountedElsewhere) return;
        const id = `${servicePort}/${protocol}`;
        add(byService, serviceOfPortId(id), connections);
        add(byEndpoint, endpointKey(id, endpoint), connections);
      },
      this.#timeSlice,
      PER_LOOK,
    );
    const before = this.#last;
    this.#last = { at, byService, byEndpoint };
    if (!before || at - before.at > LONGEST_MS) return;
    const seconds = (at - before.at) / 1000;
    this.#endpointRates = ratesOf(before.byEndpoint, byEndpoint, seconds);
    this.#replace(ratesOf(before.byService, byService, seconds));
  }

  #replace(rates: ReadonlyMap<ObjectKey, number>): void {
    for (const service of [...this.#rates.keys(), ...rates.keys()]) this.#changed.add(service);
    this.#rates = rates;
  }
}

function endpointKey(servicePort: ServicePortId, endpoint: string): string {
  return `${servicePort} ${endpoint}`;
}

function add(counts: Map<string, number>, key: string, connections: number): void {
  counts.set(key, (counts.get(key) ?? 0) + connections);
}

/** Of those that got some. What counted may have been written again, and begun from 0. */
function ratesOf(
  before: ReadonlyMap<string, number>,
  now: ReadonlyMap<string, number>,
  seconds: number,
): ReadonlyMap<string, number> {
  const rates = new Map<string, number>();
  for (const [key, count] of now) {
    const grown = count - (before.get(key) ?? 0);
    if (grown > 0) rates.set(key, grown / seconds);
  }
  return rates;
}
