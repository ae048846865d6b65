/** Requests to the API server, with the identity and the rate limit that belong to each. */
import type { Dispatcher } from 'undici';
import type { Clock } from '../../time/clock.ts';
import type { ApiAccess, Identity } from './credentials/identity.ts';
import type { OnDiagnostic, RequestMethod } from './diagnostics.ts';
import { acceptHeader, type Encoding, encodingOf } from './encoding.ts';
import {
  type ApiFailure,
  failureOfError,
  failureOfStatus,
  malformedAnswer,
  parseJson,
  readRetryAfter,
} from './failure.ts';
import { decodeStatus } from './protobuf/object.ts';
import { Limiter, type RateLimit } from './limiter.ts';
import { PROBE_TIMEOUT_MS, type ProbeResult } from './serverMonitor.ts';
import { type CreateDispatcher, Transport } from './transport.ts';

interface ApiClientOptions {
  readonly access: ApiAccess;
  readonly clock: Clock;
  readonly rateLimit?: RateLimit | undefined;
  /** `junction/1.0.0 (linux/x64)` */
  readonly userAgent?: string | undefined;
  readonly onDiagnostic?: OnDiagnostic | undefined;
  /** Asked for in lists and watches; JSON unless given. */
  readonly encoding?: Encoding | undefined;
  /** TCP and TLS unless given. */
  readonly createDispatcher?: CreateDispatcher | undefined;
}

export type Query = Readonly<Record<string, string>>;

export interface ApiResponse {
  readonly status: number;
  /** The header `Retry-After`. */
  readonly retryAfter: string | undefined;
  /** Of the body, by the header `Content-Type`. */
  readonly encoding: Encoding;
  /** The header `Date`. */
  readonly date?: string | undefined;
  /** Read it to its end, or break out of reading it; else the connection is never free again. */
  readonly body: AsyncIterable<Uint8Array>;
}

/** An object to be sent as JSON. */
interface ObjectRequest {
  readonly method: 'POST' | 'PATCH';
  readonly path: string;
  readonly contentType: string;
  readonly body: unknown;
}

interface Outgoing {
  readonly method: RequestMethod;
  /** With the query. */
  readonly path: string;
  readonly signal: AbortSignal | undefined;
  readonly accept: Encoding;
  readonly body?: string;
  readonly contentType?: string;
  /** A watch is neither held back nor measured: it has no end. */
  readonly isWatch?: boolean;
}

const NOT_READY: ReadonlySet<number> = new Set([401, 403, 408, 429]);
const NOT_ACCEPTABLE = 406;
const MOST_ANSWER_BYTES = 1024 * 1024;
const ANSWER_TIMEOUT_MS = 30_000;
const MOST_WAITING = 100;

export class ApiClient {
  readonly #options: ApiClientOptions;
  readonly #transport: Transport;
  readonly #limiter: Limiter;
  readonly #basePath: string;
  readonly #host: string;
  /** What was answered with a time to wait: the next such request is a retry. */
  readonly #askedToWait = new Set<string>();
  /** Of the last request: probes must not start a credential plugin. */
  #lastIdentity: Identity | undefined;
  #encoding: Encoding;

  constructor(options: ApiClientOptions) {
    this.#options = options;
    const { access, clock, rateLimit } = options;
    const onCreated = (): void => options.onDiagnostic?.({ kind: 'transport' });
    this.#transport = new Transport(access, onCreated, options.createDispatcher);
    this.#limiter = new Limiter(clock, rateLimit);
    this.#basePath = access.server.pathname.replace(/\/+$/, '');
    this.#host = access.host ?? access.server.host;
    this.#encoding = options.encoding ?? 'json';
  }

  /** What lists and watches are asked for in. */
  get encoding(): Encoding {
    return this.#encoding;
  }

  /**
   * Any status is an answer; only a request without one throws. The answer is JSON. Watches are not held back by the
   * rate limit.
   */
  get(path: string, query: Query = {}, { signal }: { signal?: AbortSignal } = {}): Promise<ApiResponse> {
    return this.#get(path, query, signal, 'json');
  }

  /**
   * `get` for a list or a watch, in the encoding that was asked for or in JSON: the answer says which.
   */
  async getObjects(path: string, query: Query, signal: AbortSignal): Promise<ApiResponse> {
    const accept = this.#encoding;
    const response = await this.#get(path, query, signal, accept);
    if (response.status !== NOT_ACCEPTABLE || accept === 'json') return response;
    // Something between the server and us takes the first type for the only one.
    await readText(response.body).catch(() => '');
    this.#encoding = 'json';
    return this.#get(path, query, signal, 'json');
  }

  #get(path: string, query: Query, signal: AbortSignal | undefined, accept: Encoding): Promise<ApiResponse> {
    const search = new URLSearchParams(query).toString();
    return this.#send({
      method: 'GET',
      path: search === '' ? path : `${path}?${search}`,
      signal,
      accept,
      isWatch: query['watch'] === 'true',
    });
  }

  /** The server was away and is back, perhaps as a newer one: it is asked as at first. */
  resetEncoding(): void {
    this.#encoding = this.#options.encoding ?? 'json';
  }

  async send(
    { body: object, ...request }: ObjectRequest,
    signal?: AbortSignal,
  ): Promise<{ readonly status: number; readonly body: unknown }> {
    const { status, body } = await this.#send({
      ...request,
      signal,
      accept: 'json',
      body: JSON.stringify(object),
    });
    const text = await readText(body);
    return { status, body: text === '' ? undefined : parseJson(text, `the answer to ${request.path}`) };
  }

  /**
   * Asks whether the server is ready, in one small request that every user may make and that no rate limit holds back.
   * Any status but these proves a server that serves: 401 and 403 are said while users and roles are being loaded.
   */
  async probe(stop: AbortSignal): Promise<ProbeResult> {
    const { clock, access, onDiagnostic } = this.#options;
    const controller = new AbortController();
    const end = (): void => controller.abort();
    const cancel = clock.schedule(PROBE_TIMEOUT_MS, end);
    stop.addEventListener('abort', end);
    let code = '<error>';
    try {
      const identity = this.#lastIdentity ?? (await access.identity());
      const outgoing = { method: 'GET', path: '/readyz', signal: controller.signal, accept: 'json' } as const;
      const { statusCode, body } = await this.#dispatch('probes', identity, outgoing);
      code = String(statusCode);
      await body.dump();
      const isRefusal = statusCode >= 500 || NOT_READY.has(statusCode);
      return isRefusal ? 'notReady' : 'ready';
    } catch {
      return 'noAnswer';
    } finally {
      cancel();
      stop.removeEventListener('abort', end);
      const unmeasured = { isRetry: false, limitedMs: undefined, sentBytes: undefined };
      if (!stop.aborted)
        onDiagnostic?.({ kind: 'request', method: 'GET', host: this.#host, code, ...unmeasured });
    }
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
  async failureOf({ status, retryAfter, body, encoding }: ApiResponse, what: string): Promise<ApiFailure> {
    const bytes = await readBytes(body).catch(() => Buffer.alloc(0));
    const raw = encoding === 'protobuf' ? decodeStatus(bytes) : parseStatus(bytes.toString('utf8'));
    const retryAfterMs = readRetryAfter(retryAfter, Date.now);
    return failureOfStatus(raw, status, what, retryAfterMs);
  }

  async #send(outgoing: Outgoing): Promise<ApiResponse> {
    const { clock, access, onDiagnostic } = this.#options;
    const { method, signal, isWatch } = outgoing;
    const begun = clock.now();
    const answered = (receivedBytes: number | undefined): void => {
      if (isWatch || (receivedBytes === undefined && signal?.aborted)) return;
      const durationMs = clock.now() - begun;
      onDiagnostic?.({ kind: 'answer', method, host: this.#host, durationMs, receivedBytes });
    };
    try {
      let response = await this.#attempt(outgoing, this.#askedToWait.delete(askedFor(outgoing)));
      if (response.status === 401 && (await access.renew())) {
        await readText(response.body).catch(() => '');
        response = await this.#attempt(outgoing, true);
      }
      return isWatch ? response : { ...response, body: measured(response.body, answered) };
    } catch (error) {
      answered(undefined);
      throw error;
    }
  }

  async #attempt(outgoing: Outgoing, isRetry: boolean): Promise<ApiResponse> {
    const { clock, access, onDiagnostic } = this.#options;
    const { method, signal, isWatch } = outgoing;
    const asked = clock.now();
    if (!isWatch) await this.#limiter.acquire(signal);
    signal?.throwIfAborted();
    const limitedMs = isWatch ? undefined : clock.now() - asked;
    const sentBytes = isWatch ? undefined : Buffer.byteLength(outgoing.body ?? '');
    const report = (code: string): void =>
      onDiagnostic?.({ kind: 'request', method, host: this.#host, code, isRetry, limitedMs, sentBytes });
    try {
      const identity = await unlessAborted(access.identity(), signal);
      this.#lastIdentity = identity;
      const { statusCode: status, headers, body } = await this.#dispatch('requests', identity, outgoing);
      report(String(status));
      const retryAfter = headers['retry-after']?.toString();
      // The server is busy, and says when it wants to be asked again; client-go's clients do so by themselves.
      if (retryAfter !== undefined && (status === 429 || status >= 500)) {
        // Events have paths of their own, and may never be sent again.
        if (this.#askedToWait.size >= MOST_WAITING) this.#askedToWait.clear();
        this.#askedToWait.add(askedFor(outgoing));
      }
      const encoding = encodingOf(headers['content-type']?.toString());
      return { status, retryAfter, encoding, date: headers['date']?.toString(), body };
    } catch (error) {
      if (signal?.aborted) throw error;
      report('<error>');
      throw failureOfError(error, `${access.server.origin}${withoutQuery(outgoing.path)}`);
    }
  }

  async #dispatch(
    connections: 'requests' | 'probes',
    identity: Identity,
    { method, path, signal, accept, contentType, body }: Outgoing,
  ): Promise<Dispatcher.ResponseData> {
    const { access, userAgent } = this.#options;
    const { authorization } = identity;
    const dispatcher = (await this.#transport.connectionsFor(identity))[connections];
    const response = dispatcher.request({
      origin: access.server.origin,
      path: this.#basePath + path,
      method,
      ...(signal && { signal }),
      ...(body !== undefined && { body, bodyTimeout: ANSWER_TIMEOUT_MS }),
      headers: {
        accept: acceptHeader(accept),
        'user-agent': userAgent ?? 'junction',
        ...(authorization !== undefined && { authorization }),
        ...(contentType !== undefined && { 'content-type': contentType }),
      },
    });
    // undici does not look at the signal before it is connected, and a TLS handshake may hang.
    return unlessAborted(response, signal);
  }
}

function askedFor({ method, path }: Outgoing): string {
  return `${method} ${withoutQuery(path)}`;
}

function withoutQuery(path: string): string {
  return path.replace(/\?.*/s, '');
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

async function readText(body: AsyncIterable<Uint8Array>): Promise<string> {
  return (await readBytes(body)).toString('utf8');
}

/** A Status; of anything else, its beginning as the message. */
function parseStatus(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return { message: text.slice(0, 200) };
  }
}

async function readBytes(body: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.length;
    if (length > MOST_ANSWER_BYTES)
      throw malformedAnswer(`an answer is longer than ${MOST_ANSWER_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
