/** Connections a second by service, from two readings of what the kernel has counted. */
import type { ObjectKey } from '../../model/objects.ts';
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

export class ConnectionRates {
  readonly #options: ConnectionRatesOptions;
  readonly #timeSlice: TimeSlice;
  #last: { readonly at: number; readonly counts: ReadonlyMap<ObjectKey, number> } | undefined;
  /** Of those that got some. */
  #rates: ReadonlyMap<ObjectKey, number> = new Map();
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
    if (this.#last && clock.now() - this.#last.at > LONGEST_MS) this.#replace(new Map());
    if (!this.#reading && clock.now() >= this.#notBefore)
      this.#reading = this.#read().finally(() => (this.#reading = undefined));
    return this.#reading ?? Promise.resolve();
  }

  /** `undefined`: none, or it is not known yet. */
  of(service: ObjectKey): number | undefined {
    return this.#rates.get(service);
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
    const counts = new Map<ObjectKey, number>();
    await forEachSliced(
      readings,
      ({ servicePort, connections, isCountedElsewhere }) => {
        if (isCountedElsewhere) return;
        const service = serviceOf(servicePort);
        counts.set(service, (counts.get(service) ?? 0) + connections);
      },
      this.#timeSlice,
      PER_LOOK,
    );
    const before = this.#last;
    this.#last = { at, counts };
    if (!before || at - before.at > LONGEST_MS) return;
    const seconds = (at - before.at) / 1000;
    const rates = new Map<ObjectKey, number>();
    for (const [service, count] of counts) {
      // What counted may have been written again, and begun from 0.
      const grown = count - (before.counts.get(service) ?? 0);
      if (grown > 0) rates.set(service, grown / seconds);
    }
    this.#replace(rates);
  }

  #replace(rates: ReadonlyMap<ObjectKey, number>): void {
    for (const service of [...this.#rates.keys(), ...rates.keys()]) this.#changed.add(service);
    this.#rates = rates;
  }
}

/** Of `shop/web:http`. */
function serviceOf(servicePort: string): ObjectKey {
  const colon = servicePort.indexOf(':');
  return colon < 0 ? servicePort : servicePort.slice(0, colon);
}
