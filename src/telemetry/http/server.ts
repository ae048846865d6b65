/** HTTP servers: a page is a function from a request to an answer, both data. */
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { errorCode, messageOf } from '../../errors.ts';
import type { Log } from '../../log/log.ts';
import type { Clock } from '../../time/clock.ts';

export interface Request {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  /** Host and port of a target that is a whole address, as clients send it to a proxy. It counts instead of `Host`. */
  readonly authority?: string | undefined;
  /** The client's address; a unix socket has none. */
  readonly client?: string | undefined;
  /** Aborted when the client has disconnected. */
  readonly signal: AbortSignal;
  /** The body, or `undefined` where it is longer than that. */
  text(maxBytes: number): Promise<string | undefined>;
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
}

/** Sent as it is made, as fast as the client reads. */
export interface StreamedAnswer extends Omit<Answer, 'body'> {
  readonly chunks: AsyncIterable<string | Uint8Array>;
  /** It may rest for as long as it likes. */
  readonly isEndless?: boolean;
  /** Of one without end that has heartbeats: a client that has taken nothing for so long is disconnected. */
  readonly mostStalledMs?: number;
}

export type Page = (request: Request) => Answer | Promise<Answer>;
export type StreamingPage = (request: Request) => Answer | StreamedAnswer | Promise<Answer | StreamedAnswer>;

type Headers = Readonly<Record<string, string>>;

function typed(status: number, type: string, body: Answer['body'], headers: Headers = {}): Answer {
  // Browsers must not guess another type than the one that is named.
  return { status, headers: { 'Content-Type': type, 'X-Content-Type-Options': 'nosniff', ...headers }, body };
}

export function json(status: number, body: string, headers: Headers = {}): Answer {
  return typed(status, 'application/json', body, headers);
}

export function plain(status: number, body: string, headers: Headers = {}): Answer {
  return typed(status, 'text/plain; charset=utf-8', body, headers);
}

export function html(body: string): Answer {
  return typed(200, 'text/html; charset=utf-8', body);
}

export function download(fileName: string, body: string): Answer {
  return typed(200, 'application/octet-stream', body, {
    'Content-Disposition': `attachment; filename="${fileName}"`,
  });
}

export const NOT_FOUND: Answer = plain(404, '404 page not found\n');

/** A page that only reads: other methods are not allowed. */
export function readOnly(page: Page): Page {
  return (request) =>
    request.method === 'GET' || request.method === 'HEAD'
      ? page(request)
      : plain(405, 'method not allowed\n', { Allow: 'GET, HEAD' });
}

/** Requests of one connection before their answers. Node hands over all that it has read, and each may hold a stream. */
const MOST_PIPELINED = 8;

/** Survives whatever it is sent. */
export function pageServer(page: StreamingPage, log: Log, options: ServerOptions = {}): Server {
  const unanswered = new WeakMap<Socket, number>();
  const server = createServer(options, (incoming, response) => {
    const { socket } = incoming;
    const count = (unanswered.get(socket) ?? 0) + 1;
    unanswered.set(socket, count);
    if (count > MOST_PIPELINED) {
      socket.destroy();
      return;
    }
    response.once('close', () => unanswered.set(socket, (unanswered.get(socket) ?? 1) - 1));
    reply(page, incoming, response, log, server.timeout).catch((error: unknown) => {
      log.verbose(3, 'Failed to send an HTTP response', { path: incoming.url, err: error });
      response.destroy();
    });
  });
  server.on('clientError', (error, socket) => {
    const status = REFUSALS[errorCode(error) ?? ''] ?? '400 Bad Request';
    if (socket.writable) socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\n\r\n`);
    else socket.destroy();
  });
  return server;
}

/** By the error that Node has for what it could not read. */
const REFUSALS: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
};

async function reply(
  page: StreamingPage,
  incoming: IncomingMessage,
  response: ServerResponse,
  log: Log,
  idleMs: number,
): Promise<void> {
  const { socket } = incoming;
  const disconnected = new AbortController();
  const end = (): void => {
    socket.off('close', end);
    disconnected.abort();
  };
  // A response that waits behind another one of its connection has no socket yet, and is not closed with it.
  socket.once('close', end);
  response.once('close', end);
  // A client that waits for us is not idle.
  socket.setTimeout(0);
  let answer: Answer | StreamedAnswer;
  try {
    answer = await page(requestOf(incoming, disconnected.signal));
  } catch (error) {
    log.error('HTTP handler failed', { path: incoming.url, err: error });
    answer = plain(500, 'internal error\n');
  }
  if (response.destroyed) return;
  const { status, headers } = answer;
  if ('chunks' in answer) {
    const { isEndless, mostStalledMs = 0 } = answer;
    response.writeHead(status, headers);
    socket.setTimeout(isEndless ? mostStalledMs : idleMs);
    await stream(answer.chunks, response, disconnected.signal);
    return;
  }
  socket.setTimeout(idleMs);
  const { body } = answer;
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  response.writeHead(status, { ...headers, ...(status !== 304 && { 'Content-Length': bytes.length }) });
  response.end(bytes);
}

/** No chunk is asked for before the client has taken the last. */
async function stream(
  chunks: AsyncIterable<string | Uint8Array>,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  // A client that waits for the first of them knows that it was heard.
  response.flushHeaders();
  for await (const chunk of chunks) {
    if (signal.aborted) return;
    if (!response.write(chunk)) await once(response, 'drain', { signal });
  }
  response.end();
}

function requestOf(incoming: IncomingMessage, signal: AbortSignal): Request {
  // `/path?query`, or the whole address as it is sent to a proxy.
  const [, authority, path = '', query = ''] =
    /^(?:https?:\/\/([^/?]*))?([^?]*)(?:\?(.*))?$/is.exec(incoming.url ?? '/') ?? [];
  return {
    method: incoming.method ?? 'GET',
    path: path === '' ? '/' : path,
    query: new URLSearchParams(query),
    headers: incoming.headers,
    authority,
    client: incoming.socket.remoteAddress,
    signal,
    text: (maxBytes) => readText(incoming, maxBytes),
  };
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

type ListenOptions =
  | {
      readonly host?: string;
      readonly port: number;
      /** Of `::`: leave the port free on IPv4. */
      readonly ipv6Only?: boolean;
    }
  | { readonly path: string; readonly backlog: number };

export function listen(server: Server, options: ListenOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ ...options, exclusive: true }, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

const IDLE_CHECK_MS = 10;

/**
 * Resolves when the port is free again. Clients that are still connected are disconnected; answers that are under way have
 * so much time.
 */
export function close(server: Server, graceMs = 0): Promise<void> {
  return new Promise((resolve) => {
    const check = setInterval(() => server.closeIdleConnections(), IDLE_CHECK_MS);
    const limit = setTimeout(() => server.closeAllConnections(), graceMs);
    server.close(() => {
      clearInterval(check);
      clearTimeout(limit);
      resolve();
    });
    if (graceMs === 0) server.closeAllConnections();
  });
}

/** `0.0.0.0:10256`, `[::]:10256`; `:10256`, with an empty host: every address. */
export function parseListenAddress(
  address: string,
): { readonly host: string; readonly port: number } | undefined {
  const match = /^(?:\[([^\]]*)\]|([^:[\]]*)):(\d{1,5})$/.exec(address);
  if (!match) return undefined;
  const port = Number(match[3]);
  return port > 65_535 ? undefined : { host: match[1] ?? match[2] ?? '', port };
}

export interface BindOptions {
  /** `0.0.0.0:10256`, `[::1]:10256`. */
  readonly address: string;
  readonly log: Log;
  readonly clock: Clock;
  /** Where given: called instead of trying again. */
  readonly onHardFail?: ((error: Error) => void) | undefined;
}

interface BoundServerDetails {
  readonly makeServer?: (page: StreamingPage, log: Log) => Server;
  /** For answers that are under way when it is stopped. */
  readonly graceMs?: number;
}

interface FailureTexts {
  /** Of the log. */
  readonly message: string;
  /** Of the error, before the address. */
  readonly what: string;
}

const RETRY_MS = 5000;

/** A server at a configured address. While another program holds the address, it tries again or gives up. */
export class BoundServer {
  readonly #options: BindOptions;
  readonly #page: StreamingPage;
  readonly #failure: FailureTexts;
  readonly #details: BoundServerDetails;
  #server: Server | undefined;
  #cancelRetry: (() => void) | undefined;
  #attempt: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(
    options: BindOptions,
    page: StreamingPage,
    failure: FailureTexts,
    details: BoundServerDetails = {},
  ) {
    this.#options = options;
    this.#details = details;
    this.#page = page;
    this.#failure = failure;
  }

  /** Resolves after the first attempt, also when it has failed. */
  start(): Promise<void> {
    this.#attempt = this.#tryToBind();
    return this.#attempt;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelRetry?.();
    await this.#attempt;
    if (this.#server) await close(this.#server, this.#details.graceMs);
    this.#server = undefined;
  }

  /** `undefined` while it has none. */
  get port(): number | undefined {
    const address = this.#server?.address();
    return typeof address === 'object' ? address?.port : undefined;
  }

  async #tryToBind(): Promise<void> {
    const { address, log } = this.#options;
    const { makeServer = pageServer } = this.#details;
    const server = makeServer(this.#page, log);
    try {
      await listenLikeGo(server, address);
    } catch (error) {
      this.#onFailure(error);
      return;
    }
    server.on('error', (error) => log.error(this.#failure.message, { address, err: error }));
    if (this.#stopped) {
      await close(server);
      return;
    }
    this.#server = server;
  }

  #onFailure(cause: unknown): void {
    const { address, log, clock, onHardFail } = this.#options;
    const error = new Error(`${this.#failure.what} ${address}: ${messageOf(cause)}`, { cause });
    log.error(this.#failure.message, { err: error });
    if (onHardFail) onHardFail(error);
    else if (!this.#stopped) this.#cancelRetry = clock.schedule(RETRY_MS, () => void this.start());
  }
}

/** On every address of either family where one of them is asked for, like Go's `net.Listen("tcp", …)`. */
async function listenLikeGo(server: Server, address: string): Promise<void> {
  const { host, port } = parseListenAddress(address) ?? {};
  if (host === undefined || port === undefined) throw new Error(`${address} is not an address with a port`);
  // Without a host, Node listens on `::` for both families, and on 0.0.0.0 where there is no IPv6.
  await listen(server, ['', '0.0.0.0', '::'].includes(host) ? { port } : { host, port });
}
