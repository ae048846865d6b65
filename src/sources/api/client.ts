/** Requests to the API server, with the identity and the rate limit that belong to each. */
import type { Dispatcher } from 'undici';
import type { Clock } from '../../time/clock.ts';
import { wait } from '../../time/wait.ts';
import type { ApiAccess, Identity } from './credentials/access.ts';
import type { OnDiagnostic, RequestMethod } from './diagnostics.ts';
import {
  type ApiFailure,
  failureOfError,
  failureOfStatus,
  malformedAnswer,
  parseJson,
  readRetryAfter,
  readStatus,
} from './failure.ts';
import { PROBE_TIMEOUT_MS, type ProbeResult } from './serverMonitor.ts';
import { Transport } from './transport.ts';

export interface ApiClientOptions {
  readonly access: ApiAccess;
  readonly clock: Clock;
  readonly rateLimit?: RateLimit | undefined;
  /** `junction/1.0.0 (linux/x64)` */
  readonly userAgent?: string | undefined;
  readonly onDiagnostic?: OnDiagnostic | undefined;
  /** Milliseconds since the epoch. */
  readonly wallTime?: (() => number) | undefined;
}

export type Query = Readonly<Record<string, string>>;

export interface RequestOptions {
  readonly signal?: AbortSignal | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

export interface ApiResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Read it to its end, or break out of reading it; else the connection is never free again. */
  readonly body: AsyncIterable<Uint8Array>;
}

export interface JsonResponse {
  readonly status: number;
  readonly body: unknown;
}

interface Outgoing extends RequestOptions {
  readonly method: RequestMethod;
  /** With the query. */
  readonly path: string;
  readonly body?: string;
  /** A watch is neither held back nor measured: it has no end. */
  readonly isWatch: boolean;
}

const NOT_READY: ReadonlySet<number> = new Set([401, 403, 408, 429]);
const MOST_ANSWER_BYTES = 1024 * 1024;
const ANSWER_TIMEOUT_MS = 30_000;
const MOST_WAITING = 100;

export class ApiClient {
  readonly #options: ApiClientOptions;
  readonly #transport: Transport;
  readonly #limiter: Limiter;
  readonly #basePath: string;
  /** What was answered with a time to wait: the next such request is a retry. */
  readonly #askedToWait = new Set<string>();
  /** Of the last request: probes must not start a credential plugin. */
  #lastIdentity: Identity | undefined;

  constructor(options: ApiClientOptions) {
    this.#options = options;
    this.#transport = new Transport(options.access, () => options.onDiagnostic?.({ kind: 'transport' }));
    this.#limiter = new Limiter(options.clock, options.rateLimit);
    this.#basePath = options.access.server.pathname.replace(/\/+$/, '');
  }

  /** Any status is an answer; only a request without one throws. Watches are not held back by the rate limit. */
  get(path: string, query: Query = {}, options: RequestOptions = {}): Promise<ApiResponse> {
    const search = new URLSearchParams(query).toString();
    return this.#send({
      ...options,
      method: 'GET',
      path: search === '' ? path : `${path}?${search}`,
      isWatch: query['watch'] === 'true',
    });
  }

  post(path: string, body: unknown, options: RequestOptions = {}): Promise<JsonResponse> {
    return this.#exchange('POST', path, body, 'application/json', options);
  }

  /** As a strategic merge patch, unless a header says otherwise. */
  patch(path: string, body: unknown, options: RequestOptions = {}): Promise<JsonResponse> {
    return this.#exchange('PATCH', path, body, 'application/strategic-merge-patch+json', options);
  }

  /**
   * Asks whether the server is ready, in one small request that every user may make and that no rate limit holds back.
   * Any status but these proves a server that serves: 401 and 403 are said while users and roles are being loaded.
   */
  async probe(stop: AbortSignal): Promise<ProbeResult> {
    const controller = new AbortController();
    const end = (): void => controller.abort();
    const cancel = this.#options.clock.schedule(PROBE_TIMEOUT_MS, end);
    stop.addEventListener('abort', end);
    let code = '<error>';
    try {
      const identity = this.#lastIdentity ?? (await this.#options.access.identity());
      const dispatcher = this.#transport.probeDispatcherFor(identity);
      const outgoing = { method: 'GET', path: '/readyz', signal: controller.signal } as const;
      const { statusCode, body } = await this.#dispatch(dispatcher, identity, outgoing);
      code = String(statusCode);
      await body.dump();
      const isRefusal = statusCode >= 500 || NOT_READY.has(statusCode);
      return isRefusal ? 'notReady' : 'ready';
    } catch {
      return 'noAnswer';
    } finally {
      cancel();
      stop.removeEventListener('abort', end);
      if (!stop.aborted) this.#reportProbe(code);
    }
  }

  #reportProbe(code: string): void {
    const host = hostOf(this.#options.access);
    const unmeasured = { isRetry: false, limitedMs: undefined, sentBytes: undefined };
    this.#options.onDiagnostic?.({ kind: 'request', method: 'GET', host, code, ...unmeasured });
  }

  /**
   * Has the credentials at hand, so that a slow plugin takes nothing of the time that the server has for its answer.
   * Returns early when it is to stop.
   */
  async prepare(stop: AbortSignal): Promise<void> {
    const { access } = this.#options;
    try {
      await unlessAborted(access.identity(), stop);
    } catch (error) {
      throw failureOfError(error, access.server.origin);
    }
  }

  /** From now on requests go out on new connections; streams that are open go on. */
  renewConnections(): void {
    this.#transport.renew();
  }

  /** Ends every request that is under way. */
  close(): Promise<void> {
    return this.#transport.close();
  }

  /** What a status of 400 or more means. Reads the body. */
  async failureOf(response: ApiResponse, what: string): Promise<ApiFailure> {
    const body = await readText(response.body).catch(() => '');
    const raw = parsed(body) ?? { message: body.slice(0, 200) };
    const wallTime = this.#options.wallTime ?? Date.now;
    const retryAfterMs = readRetryAfter(response.headers['retry-after'], wallTime);
    return failureOfStatus(readStatus(raw, response.status), what, retryAfterMs);
  }

  async #exchange(
    method: RequestMethod,
    path: string,
    content: unknown,
    contentType: string,
    options: RequestOptions,
  ): Promise<JsonResponse> {
    const headers = { 'content-type': contentType, ...options.headers };
    const sent = { ...options, headers, method, path, body: JSON.stringify(content), isWatch: false };
    const { status, body } = await this.#send(sent);
    const text = await readText(body);
    return { status, body: text === '' ? undefined : parseJson(text, `the answer to ${path}`) };
  }

  async #send(outgoing: Outgoing): Promise<ApiResponse> {
    if (outgoing.isWatch) return this.#sendAgainIfRenewed(outgoing);
    const { clock, access, onDiagnostic } = this.#options;
    const begun = clock.now();
    const answered = (receivedBytes: number | undefined): void => {
      const { method, signal } = outgoing;
      if (receivedBytes === undefined && signal?.aborted) return;
      const durationMs = clock.now() - begun;
      onDiagnostic?.({ kind: 'answer', method, host: hostOf(access), durationMs, receivedBytes });
    };
    try {
      const response = await this.#sendAgainIfRenewed(outgoing);
      return { ...response, body: measured(response.body, answered) };
    } catch (error) {
      answered(undefined);
      throw error;
    }
  }

  async #sendAgainIfRenewed(outgoing: Outgoing): Promise<ApiResponse> {
    const isRetry = this.#askedToWait.delete(askedFor(outgoing));
    const response = await this.#attempt(outgoing, isRetry);
    if (response.status !== 401 || !(await this.#options.access.renew())) return response;
    await readText(response.body).catch(() => '');
    return this.#attempt(outgoing, true);
  }

  async #attempt(outgoing: Outgoing, isRetry: boolean): Promise<ApiResponse> {
    const { clock, access, onDiagnostic } = this.#options;
    const { method, signal, isWatch, body = '' } = outgoing;
    const host = hostOf(access);
    const asked = clock.now();
    if (!isWatch) await this.#limiter.acquire(signal);
    signal?.throwIfAborted();
    const limitedMs = isWatch ? undefined : clock.now() - asked;
    const sentBytes = isWatch ? undefined : Buffer.byteLength(body);
    const report = (code: string): void =>
      onDiagnostic?.({ kind: 'request', method, host, code, isRetry, limitedMs, sentBytes });
    try {
      const { statusCode: status, headers, body } = await this.#request(outgoing);
      report(String(status));
      const plain = plainHeaders(headers);
      if (asksToWait(status, plain)) this.#noteWait(outgoing);
      return { status, headers: plain, body };
    } catch (error) {
      if (signal?.aborted) throw error;
      report('<error>');
      throw failureOfError(error, `${access.server.origin}${outgoing.path.replace(/\?.*/s, '')}`);
    }
  }

  #noteWait(outgoing: Outgoing): void {
    // Events have paths of their own, and may never be sent again.
    if (this.#askedToWait.size >= MOST_WAITING) this.#askedToWait.clear();
    this.#askedToWait.add(askedFor(outgoing));
  }

  async #request(outgoing: Outgoing): Promise<Dispatcher.ResponseData> {
    const identity = await unlessAborted(this.#options.access.identity(), outgoing.signal);
    this.#lastIdentity = identity;
    return this.#dispatch(this.#transport.dispatcherFor(identity), identity, outgoing);
  }

  #dispatch(
    dispatcher: Dispatcher,
    identity: Identity,
    { method, path, signal, headers, body }: Omit<Outgoing, 'isWatch'>,
  ): Promise<Dispatcher.ResponseData> {
    const { access, userAgent } = this.#options;
    const response = dispatcher.request({
      origin: access.server.origin,
      path: this.#basePath + path,
      method,
      ...(signal === undefined ? {} : { signal }),
      ...(body === undefined ? {} : { body, bodyTimeout: ANSWER_TIMEOUT_MS }),
      headers: {
        accept: 'application/json',
        'user-agent': userAgent ?? 'junction',
        ...(identity.authorization === undefined ? {} : { authorization: identity.authorization }),
        ...headers,
      },
    });
    // undici does not look at the signal before it is connected, and a TLS handshake may hang.
    return unlessAborted(response, signal);
  }
}

/** The server is busy, and says when it wants to be asked again; client-go's clients do so by themselves. */
function asksToWait(status: number, headers: Readonly<Record<string, string>>): boolean {
  return (status === 429 || status >= 500) && headers['retry-after'] !== undefined;
}

function hostOf({ host, server }: ApiAccess): string {
  return host ?? server.host;
}

function askedFor({ method, path }: Outgoing): string {
  return `${method} ${path.replace(/\?.*/s, '')}`;
}

/** `ended` gets how many bytes there were, or nothing where the answer was not read to its end. */
async function* measured(
  body: AsyncIterable<Uint8Array>,
  ended: (bytes: number | undefined) => void,
): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  let isWhole = false;
  try {
    for await (const chunk of body) {
      bytes += chunk.length;
      yield chunk;
    }
    isWhole = true;
  } finally {
    ended(isWhole ? bytes : undefined);
  }
}

/** A plugin may take a minute, a handshake ten seconds; a stop does not wait for them. */
async function unlessAborted<T>(result: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return result;
  let stop = (): void => undefined;
  const stopped = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop);
  });
  try {
    return await Promise.race([result, stopped]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

function plainHeaders(headers: Dispatcher.ResponseData['headers']): Readonly<Record<string, string>> {
  const plain: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) plain[name] = typeof value === 'string' ? value : value.join(', ');
  }
  return plain;
}

async function readText(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.length;
    if (length > MOST_ANSWER_BYTES)
      throw malformedAnswer(`an answer is longer than ${MOST_ANSWER_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export interface RateLimit {
  /** Below 0: no limit. 0: the default, 5. */
  readonly qps: number;
  /** 0: the default, 10. */
  readonly burst: number;
}

const DEFAULT_LIMIT: RateLimit = { qps: 5, burst: 10 };

/** Client-side rate limit: a bucket that holds `burst` requests and fills with `qps` a second. */
export class Limiter {
  readonly #clock: Clock;
  readonly #msPerRequest: number;
  readonly #burst: number;
  /** When the bucket is, or will be, full. */
  #fullAt: number;

  constructor(clock: Clock, { qps, burst }: RateLimit = DEFAULT_LIMIT) {
    this.#clock = clock;
    this.#msPerRequest = qps < 0 ? 0 : 1000 / (qps || DEFAULT_LIMIT.qps);
    this.#burst = burst || DEFAULT_LIMIT.burst;
    this.#fullAt = clock.now();
  }

  /** Resolves when a request may go out. */
  async acquire(signal?: AbortSignal): Promise<void> {
    const now = this.#clock.now();
    this.#fullAt = Math.max(this.#fullAt, now) + this.#msPerRequest;
    const delay = this.#fullAt - now - this.#burst * this.#msPerRequest;
    if (delay > 0) await wait(this.#clock, delay, signal);
  }
}
