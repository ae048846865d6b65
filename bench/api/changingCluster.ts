/** The objects that the API server holds, and how they change. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { RawObject, TestApiServer } from '../../test/support/apiServer/index.ts';
import type { Churn, Listening } from './messages.ts';

interface RawSlice extends RawObject {
  readonly addressType: string;
  readonly endpoints: readonly Readonly<Record<string, unknown>>[];
}

const TRIGGER_TIME = 'endpoints.kubernetes.io/last-change-trigger-time';
const TICK_MS = 10;

export class ChangingCluster {
  readonly #server: TestApiServer;
  readonly #services: RawObject[] = [];
  readonly #slices: RawSlice[] = [];
  #serviceBytes = 0;
  #sliceBytes = 0;
  #generation = 0;

  constructor(server: TestApiServer) {
    this.#server = server;
  }

  add(object: RawObject): void {
    this.#server.put(object);
    const bytes = JSON.stringify(object).length;
    if (isSlice(object)) {
      if (object.addressType !== 'IPv4') return; // those of the other family stay as they are
      this.#slices.push(object);
      this.#sliceBytes += bytes;
    } else {
      this.#services.push(object);
      this.#serviceBytes += bytes;
    }
  }

  averages(): Pick<Listening, 'serviceBytes' | 'sliceBytes'> {
    return {
      serviceBytes: Math.round(this.#serviceBytes / this.#services.length),
      sliceBytes: Math.round(this.#sliceBytes / this.#slices.length),
    };
  }

  /** Answers how many slices have changed. */
  async churn({ seconds, rate, replace }: Churn): Promise<number> {
    const begun = performance.now();
    let changes = 0;
    let replaced = 0;
    for (;;) {
      const elapsed = Math.min(seconds, (performance.now() - begun) / 1000);
      for (; changes < Math.floor(elapsed * rate); changes++) this.#replaceEndpoint();
      for (; replaced < Math.floor(elapsed * replace); replaced++) this.#replaceService();
      if (elapsed >= seconds) return changes;
      await sleep(TICK_MS);
    }
  }

  /** A pod has been replaced by another one, with another address. */
  #replaceEndpoint(): void {
    const index = this.#nextIndex();
    const slice = this.#slices[index];
    if (slice === undefined) return;
    const [, ...others] = slice.endpoints;
    const address = `10.${200 + ((this.#generation >> 16) % 50)}.${(this.#generation >> 8) & 255}.${this.#generation & 255}`;
    const changed: RawSlice = {
      ...slice,
      metadata: { ...slice.metadata, annotations: triggeredNow() },
      endpoints: [...others, { ...slice.endpoints[0], addresses: [address] }],
    };
    this.#slices[index] = changed;
    this.#server.put(changed);
  }

  #replaceService(): void {
    const index = this.#nextIndex();
    const service = this.#services[index];
    const slice = this.#slices[index];
    if (service === undefined || slice === undefined) return;
    const { namespace = '' } = service.metadata;
    this.#server.delete('Service', `${namespace}/${service.metadata.name}`);
    this.#server.delete('EndpointSlice', `${namespace}/${slice.metadata.name}`);
    const name = `service-of-generation-${this.#generation}`;
    const labels = { ...slice.metadata.labels, 'kubernetes.io/service-name': name };
    const metadata = { ...slice.metadata, name: `${name}-x7k2p`, labels, annotations: triggeredNow() };
    const newSlice = { ...slice, metadata };
    this.#services[index] = { ...service, metadata: { ...service.metadata, name } };
    this.#slices[index] = newSlice;
    this.#server.put(this.#services[index] ?? service, newSlice);
  }

  /** All over the cluster. */
  #nextIndex(): number {
    this.#generation++;
    return (this.#generation * 7919) % this.#slices.length;
  }
}

function triggeredNow(): Readonly<Record<string, string>> {
  return { [TRIGGER_TIME]: new Date().toISOString() };
}

function isSlice(object: RawObject): object is RawSlice {
  return object.kind === 'EndpointSlice';
}
