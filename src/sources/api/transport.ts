/** The connections to the API server: made again when certificates change. */
import type { Dispatcher } from 'undici';
import type { ApiAccess, Identity } from './credentials/identity.ts';

interface Connections {
  readonly identity: Identity;
  readonly requests: Dispatcher;
  /** Probes have connections of their own: those of others may be the ones that hang. */
  readonly probes: Dispatcher;
}

export type CreateDispatcher = (access: ApiAccess, identity: Identity) => Dispatcher;

export class Transport {
  readonly #access: ApiAccess;
  readonly #onCreated: () => void;
  readonly #createDispatcher: CreateDispatcher | undefined;
  #current: Connections | undefined;
  /** Those whose last streams have not ended yet. */
  readonly #retired = new Set<Dispatcher>();

  constructor(access: ApiAccess, onCreated: () => void, createDispatcher?: CreateDispatcher) {
    this.#access = access;
    this.#onCreated = onCreated;
    this.#createDispatcher = createDispatcher;
  }

  async connectionsFor(identity: Identity): Promise<Connections> {
    // undici takes a sixth of the time in which a proxy starts, and one that reads manifests does not need it.
    const createDispatcher = this.#createDispatcher ?? (await import('./dispatcher.ts')).createDispatcher;
    if (this.#current && sameCertificates(this.#current.identity, identity)) return this.#current;
    this.renew();
    const create = (): Dispatcher => createDispatcher(this.#access, identity);
    this.#current = { identity, requests: create(), probes: create() };
    this.#onCreated();
    return this.#current;
  }

  /** A load balancer may hold a connection whose backend is gone; the next request shall not be sent there. */
  renew(): void {
    for (const dispatcher of this.#takeCurrent()) {
      this.#retired.add(dispatcher);
      const drop = (): boolean => this.#retired.delete(dispatcher);
      dispatcher.close().then(drop, drop);
    }
  }

  async close(): Promise<void> {
    const open = [...this.#retired, ...this.#takeCurrent()];
    await Promise.all(open.map((dispatcher) => dispatcher.destroy()));
  }

  #takeCurrent(): readonly Dispatcher[] {
    const current = this.#current;
    this.#current = undefined;
    return current ? [current.requests, current.probes] : [];
  }
}

function sameCertificates(one: Identity, other: Identity): boolean {
  return one.ca === other.ca && one.certificate === other.certificate && one.key === other.key;
}
