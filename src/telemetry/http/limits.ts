/** Limits of the servers that answer questions. Whoever asks, and however, the proxy has other things to do. */
import type { Server, ServerOptions } from 'node:http';
import type { Log } from '../../log/log.ts';
import { pageServer, type StreamingPage } from './server.ts';

/** Others are turned away until some of these have gone. */
export const MOST_CONNECTIONS = 2000;
const LIMITS: ServerOptions = {
  maxHeaderSize: 8192,
  headersTimeout: 10_000,
  requestTimeout: 20_000,
  keepAliveTimeout: 5000,
  connectionsCheckingInterval: 2000,
};
/** A client that neither asks nor reads, nor waits for an answer. */
const IDLE_MS = 30_000;

export function limitedServer(page: StreamingPage, log: Log): Server {
  const server = pageServer(page, log, LIMITS);
  server.maxConnections = MOST_CONNECTIONS;
  server.setTimeout(IDLE_MS);
  return server;
}
