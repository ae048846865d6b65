/** The connections to the API server: made again when certificates change. */
import { Agent, type Dispatcher, ProxyAgent } from 'undici';
import type { ApiAccess, Identity } from './credentials/identity.ts';

const CONNECT_TIMEOUT_MS = 10_000;
/**
 * A dead peer is found 10 s after this, by 10 probes of the kernel (libuv sets one a second). A machine that lost its
 * power and is back answers the first of them with a reset, so this is also how late its return may be noticed.
 */
const TCP_KEEP_ALIVE_MS = 5000;
/** The API server answers within 60 s, or says that it cannot. */
const HEADERS_TIMEOUT_MS = 70_000;
/** Idle connections: shorter than the minutes after which load balancers forget them. */
const IDLE_TIMEOUT_MS = 30_000;

interface Connections {
  readonly identity: Identity;
  readonly requests: Dispatcher;
  /** Probes have connections of their own: those of others may be the ones that hang. */
  readonly probes: Dispatcher;
}

export class Transport {
  readonly #access: ApiAccess;
  readonly #onCreated: () => void;
  #current: Connections | undefined;
  /** Those whose last streams have not ended yet. */
  readonly #retired = new Set<Dispatcher>();

  constructor(access: ApiAccess, onCreated: () => void) {
    this.#access = access;
    this.#onCreated = onCreated;
  }

  connectionsFor(identity: Identity): Connections {
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

function createDispatcher(access: ApiAccess, { ca, certificate, key }: Identity): Dispatcher {
  const { server, insecure, serverName, proxy } = access;
  const connect = {
    timeout: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelay: TCP_KEEP_ALIVE_MS,
    rejectUnauthorized: !insecure,
    ...(serverName !== undefined && { servername: serverName }),
    ...(ca !== undefined && { ca }),
    ...(certificate !== undefined && { cert: certificate }),
    ...(key !== undefined && { key }),
  };
  const options = {
    headersTimeout: HEADERS_TIMEOUT_MS,
    // Whoever reads a stream knows better how long it may be silent.
    bodyTimeout: 0,
    keepAliveTimeout: IDLE_TIMEOUT_MS,
  };
  if (proxy === undefined) return new Agent({ ...options, connect });
  const proxyTunnel = server.protocol === 'https:';
  return new ProxyAgent({ ...options, uri: proxy.href, requestTls: connect, proxyTunnel });
}

function sameCertificates(one: Identity, other: Identity): boolean {
  return one.ca === other.ca && one.certificate === other.certificate && one.key === other.key;
}
