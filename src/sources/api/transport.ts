/** The connections to the API server: made anew when certificates change. */
import { Agent, type Dispatcher, ProxyAgent } from 'undici';
import type { ApiAccess, Identity } from './credentials/access.ts';

const CONNECT_TIMEOUT_MS = 10_000;
/** A dead peer is found 10 s after this, by 10 probes of the kernel (libuv sets one a second). */
const TCP_KEEP_ALIVE_MS = 30_000;
/** The API server answers within 60 s, or says that it cannot. */
const HEADERS_TIMEOUT_MS = 70_000;
/** Idle connections: shorter than the minutes after which load balancers forget them. */
const IDLE_TIMEOUT_MS = 30_000;

export class Transport {
  readonly #access: ApiAccess;
  #current: { readonly identity: Identity; readonly dispatcher: Dispatcher } | undefined;
  /** Those whose last streams have not ended yet. */
  readonly #retired = new Set<Dispatcher>();

  constructor(access: ApiAccess) {
    this.#access = access;
  }

  dispatcherFor(identity: Identity): Dispatcher {
    if (this.#current && sameCertificates(this.#current.identity, identity)) return this.#current.dispatcher;
    if (this.#current) this.#retire(this.#current.dispatcher);
    const dispatcher = createDispatcher(this.#access, identity);
    this.#current = { identity, dispatcher };
    return dispatcher;
  }

  async close(): Promise<void> {
    const all = [...this.#retired, ...(this.#current ? [this.#current.dispatcher] : [])];
    this.#current = undefined;
    await Promise.all(all.map((dispatcher) => dispatcher.destroy()));
  }

  #retire(dispatcher: Dispatcher): void {
    this.#retired.add(dispatcher);
    const forget = (): boolean => this.#retired.delete(dispatcher);
    dispatcher.close().then(forget, forget);
  }
}

function createDispatcher(
  { server, insecure, serverName, proxy }: ApiAccess,
  identity: Identity,
): Dispatcher {
  const connect = {
    timeout: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelay: TCP_KEEP_ALIVE_MS,
    rejectUnauthorized: !insecure,
    ...(serverName === undefined ? {} : { servername: serverName }),
    ...(identity.ca === undefined ? {} : { ca: identity.ca }),
    ...(identity.certificate === undefined ? {} : { cert: identity.certificate }),
    ...(identity.key === undefined ? {} : { key: identity.key }),
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
