import {
  type IncomingHttpHeaders,
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Log } from '../../log/log.ts';
import type { AddressInfo } from 'node:net';
import type { Clock } from '../../time/clock.ts';

/** Requests and answers as data, so that a page is a function from one to the other. */

export interface Request {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  /** Aborted when the client has gone. */
  readonly signal: AbortSignal;
  /** The body, or `undefined` where it is longer than that. */
  text(maxBytes: number): Promise<string | undefined>;
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | Readable;
}

export type Page = (request: Request) => Answer | Promise<Answer>;

/** Browsers must not guess another type than the one that is named. */
const NOSNIFF = { 'X-Content-Type-Options': 'nosniff' } as const;

export function json(status: number, body: string, headers: Readonly<Record<string, string>> = {}): Answer {
  return { status, headers: { 'Content-Type': 'application/json', ...NOSNIFF, ...headers }, body };
}

export function plain(status: number, body: string): Answer {
  return { status, headers: { 'Content-Type': 'text/plain; charset=utf-8', ...NOSNIFF }, body };
}

export function html(body: string): Answer {
  return { status: 200, headers: { 'Content-Type': 'text/html; charset=utf-8', ...NOSNIFF }, body };
}

export function download(fileName: string, body: string | Readable): Answer {
  return {
    status: 200,
    headers: {
      'Content-Type': 'application/octet-stream',
      ...NOSNIFF,
      'Content-Disposition': `attachment; filename="${fileName}"`,
    },
    body,
  };
}

export const NOT_FOUND: Answer = plain(404, '404 page not found\n');

/** A page that only reads: other methods are told so. */
export function readOnly(page: Page): Page {
  return (request) =>
    request.method === 'GET' || request.method === 'HEAD'
      ? page(request)
      : {
          ...plain(405, 'method not allowed\n'),
          headers: { ...plain(405, '').headers, Allow: 'GET, HEAD' },
        };
}

/** From a page to an HTTP server that survives whatever it is sent. */

export function pageServer(page: Page, log: Log): Server {
  const server = createServer((incoming, response) => {
    reply(page, incoming, response, log).catch((error: unknown) => {
      log.verbose(3, 'An answer could not be sent', { path: incoming.url, err: error });
      response.destroy();
    });
  });
  server.on('clientError', (_error, socket) => {
    if (socket.writable) socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n');
    else socket.destroy();
  });
  return server;
}

async function reply(
  page: Page,
  incoming: IncomingMessage,
  response: ServerResponse,
  log: Log,
): Promise<void> {
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  let answer: Answer;
  try {
    answer = await page(requestOf(incoming, gone.signal));
  } catch (error) {
    log.error('A page failed', { path: incoming.url, err: error });
    answer = plain(500, 'internal error\n');
  }
  await send(incoming, response, answer);
}

async function send(
  incoming: IncomingMessage,
  response: ServerResponse,
  { status, headers, body }: Answer,
): Promise<void> {
  if (response.destroyed) return;
  if (typeof body === 'string' || body instanceof Uint8Array) {
    const bytes = typeof body === 'string' ? Buffer.from(body) : body;
    response.writeHead(status, { ...headers, 'Content-Length': bytes.length });
    response.end(bytes);
    return;
  }
  response.writeHead(status, headers);
  if (incoming.method === 'HEAD') {
    body.destroy();
    response.end();
  } else {
    await pipeline(body, response);
  }
}

function requestOf(incoming: IncomingMessage, signal: AbortSignal): Request {
  const { path, query } = splitTarget(incoming.url ?? '/');
  return {
    method: incoming.method ?? 'GET',
    path,
    query: new URLSearchParams(query),
    headers: incoming.headers,
    signal,
    text: (maxBytes) => readText(incoming, maxBytes),
  };
}

/** `/path?query`, or the whole address as it is sent to a proxy. */
function splitTarget(target: string): { readonly path: string; readonly query: string } {
  const local = target.replace(/^https?:\/\/[^/?]*/i, '');
  const mark = local.indexOf('?');
  const path = mark < 0 ? local : local.slice(0, mark);
  return { path: path === '' ? '/' : path, query: mark < 0 ? '' : local.slice(mark + 1) };
}

async function readText(incoming: IncomingMessage, maxBytes: number): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of incoming) {
    const bytes = chunk as Buffer;
    length += bytes.length;
    if (length > maxBytes) return undefined;
    chunks.push(bytes);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** Opening and closing listening sockets. */

export interface ListenOptions {
  readonly host?: string;
  readonly port: number;
  /** Of `::`: leave the port free on IPv4. */
  readonly ipv6Only?: boolean;
}

export interface HostPort {
  /** Without brackets; empty: every address. */
  readonly host: string;
  readonly port: number;
}

/** `0.0.0.0:10256`, `[::]:10256`, `:10256` */
export function parseListenAddress(address: string): HostPort | undefined {
  const match = /^(?:\[([^\]]*)\]|([^:[\]]*)):(\d{1,5})$/.exec(address);
  if (!match) return undefined;
  const port = Number(match[3]);
  return port > 65_535 ? undefined : { host: match[1] ?? match[2] ?? '', port };
}

export function listen(server: Server, options: ListenOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    const onError = (error: Error): void => reject(error);
    server.once('error', onError);
    server.listen({ ...options, exclusive: true }, () => {
      server.off('error', onError);
      resolve();
    });
  });
}

/** Every address of either family where one of them is asked for, as Go's `net.Listen("tcp", …)` does. */
export function listenAsGo(server: Server, { host, port }: HostPort): Promise<void> {
  // Without a host, Node listens on `::` for both families, and on 0.0.0.0 where there is no IPv6.
  return listen(server, ['', '0.0.0.0', '::'].includes(host) ? { port } : { host, port });
}

/** Resolves when the port is free again. Clients that are still connected are cut off. */
export function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

/** A server at a configured address, which somebody else may still hold: it tries until it gets it, or gives up at once. */

export interface BindOptions {
  /** `0.0.0.0:10256`, `[::1]:10256`. */
  readonly address: string;
  readonly log: Log;
  readonly clock: Clock;
  /** Where given: called instead of trying again. */
  readonly onHardFail?: ((error: Error) => void) | undefined;
}

interface Failure {
  /** What the log says. */
  readonly message: string;
  /** What went wrong, before the address. */
  readonly what: string;
}

const RETRY_MS = 5000;

export class BoundServer {
  readonly #options: BindOptions;
  readonly #page: Page;
  readonly #failure: Failure;
  #server: Server | undefined;
  #cancelRetry: (() => void) | undefined;
  #attempt: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(options: BindOptions, page: Page, failure: Failure) {
    this.#options = options;
    this.#page = page;
    this.#failure = failure;
  }

  /** Resolves after the first attempt, whatever came of it. */
  start(): Promise<void> {
    this.#attempt = this.#tryToBind();
    return this.#attempt;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelRetry?.();
    await this.#attempt;
    if (this.#server) await close(this.#server);
    this.#server = undefined;
  }

  /** `undefined` while it has none. */
  get port(): number | undefined {
    const address = this.#server?.address();
    return isAddressInfo(address) ? address.port : undefined;
  }

  async #tryToBind(): Promise<void> {
    const { address, log } = this.#options;
    const server = pageServer(this.#page, log);
    try {
      const hostPort = parseListenAddress(address);
      if (!hostPort) throw new Error(`${address} is not an address with a port`);
      await listenAsGo(server, hostPort);
    } catch (error) {
      this.#onFailure(error);
      return;
    }
    server.on('error', (error) => log.error(this.#failure.message, { address, err: error }));
    if (this.#stopped) await close(server);
    else this.#server = server;
  }

  #onFailure(cause: unknown): void {
    const { address, log, clock, onHardFail } = this.#options;
    const reason = cause instanceof Error ? cause.message : String(cause);
    const error = new Error(`${this.#failure.what} ${address}: ${reason}`, { cause });
    log.error(this.#failure.message, { err: error });
    if (onHardFail) onHardFail(error);
    else if (!this.#stopped) {
      this.#cancelRetry = clock.schedule(RETRY_MS, () => {
        this.#attempt = this.#tryToBind();
      });
    }
  }
}

function isAddressInfo(address: AddressInfo | string | null | undefined): address is AddressInfo {
  return typeof address === 'object' && address !== null;
}
