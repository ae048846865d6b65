/** The objects that the API server holds, and how they change. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { RawObject, TestApiServer } from '../../test/support/apiServer/index.ts';
import type { Churn } from './serverMessages.ts';

interface RawSlice extends RawObject {
  readonly addressType: string;
  readonly endpoints: readonly Readonly<Record<string, unknown>>[];
}

const TRIGGER_TIME = 'endpoints.kubernetes.io/last-change-trigger-time';
const TICK_MS = 10;

export class ChangingCluster {
  readonly #server: TestApiServer;
  readonly #slices: RawSlice[] = [];
  #generation = 0;

  constructor(server: TestApiServer) {
    this.#server = server;
  }

  add(object: RawObject): void {
    this.#server.put(object);
    // Those of the other family stay as they are.
    if (isSlice(object) && object.addressType === 'IPv4') this.#slices.push(object);
  }

  /** Answers how many slices have changed. */
  async churn({ seconds, rate }: Churn): Promise<number> {
    const begun = performance.now();
    let changes = 0;
    for (;;) {
      const elapsed = Math.min(seconds, (performance.now() - begun) / 1000);
      for (; changes < Math.floor(elapsed * rate); changes++) this.#replaceEndpoint();
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
