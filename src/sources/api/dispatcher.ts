/** How connections to the API server are made and kept. */
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

export function createDispatcher(access: ApiAccess, { ca, certificate, key }: Identity): Dispatcher {
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
