/**
 * An API server for tests: neither stricter nor kinder than the real one (kube-apiserver 1.36.4), in JSON and in protobuf.
 *
 * Lists with pages, watches with history and bookmarks, streamed lists, tokens and client certificates; and a hook
 * for each thing that goes wrong in real clusters. `log` holds every request.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { Clock } from '../../../src/time/clock.ts';
import { systemClock } from '../../../src/time/systemClock.ts';
import { type CertificateName, certificate, privateKey } from './certs.ts';
import { answerWithFault, sendPieces, sendStatus } from './answers.ts';
import { head, negotiate, type ServedEncoding } from './negotiate.ts';
import { type Fault, Faults, type RequestKind } from './faults.ts';
import { Lister } from './listing.ts';
import type { MemoryNetwork } from './memoryNetwork.ts';
import { flag, type ListOptions, readListOptions } from './options.ts';
import { RESOURCES, type ServedResource } from './resources.ts';
import { readSelectors } from './selectors.ts';
import { notFound, noWatchProgress, StatusError, tooLarge } from './status.ts';
import { ObjectStore, type RawObject } from './store.ts';
import { Watch } from './watching.ts';

/** Everybody may ask there. */
const HEALTH_PATHS: ReadonlySet<string> = new Set(['/readyz', '/livez', '/healthz']);
const FRESHNESS_MS = 3000;

export interface ApiServerOptions {
  readonly clock?: Clock;
  /** Listens there instead of on a port. */
  readonly network?: MemoryNetwork;
  /** Plain HTTP when not given. */
  readonly certificate?: Extract<CertificateName, 'server' | 'expiredServer'>;
  /** Anybody may come when neither tokens nor client certificates are asked for. */
  readonly tokens?: readonly string[];
  readonly clientCertificates?: boolean;
  readonly streamsLists?: StreamingLists;
  /** True when not given. */
  readonly hasProtobuf?: boolean;
  /** Not served at all. */
  readonly without?: readonly string[];
  readonly revision?: number;
  /** How many changes of a resource are remembered. */
  readonly history?: number;
}

/**
 * False: the feature is off, as it was before 1.34. `noWatchProgress`: the server has it, but its etcd is too old, which
 * it says in the stream.
 */
export type StreamingLists = boolean | 'noWatchProgress';

export interface LoggedRequest {
  readonly method: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly kind: RequestKind;
  readonly resource: string;
  readonly headers: IncomingMessage['headers'];
  /** 0 until it is answered. */
  status: number;
}

export class TestApiServer {
  readonly store: ObjectStore;
  readonly faults = new Faults();
  readonly log: LoggedRequest[] = [];
  /** What was posted to events.k8s.io, with the path; patches are in it. */
  readonly events: { readonly path: string; body: unknown }[] = [];
  /** What becomes of a command that somebody runs in a pod. */
  readonly watches = new Set<Watch>();
  readonly tokens: Set<string>;
  streamsLists: StreamingLists;
  /** False: whoever asks for protobuf gets JSON. */
  hasProtobuf: boolean;
  readonly #options: ApiServerOptions;
  readonly #clock: Clock;
  readonly #lister: Lister;
  readonly #sockets = new Set<Socket>();
  #server: Server;
  #port = 0;

  private constructor(options: ApiServerOptions) {
    this.#options = options;
    this.#clock = options.clock ?? options.network?.clock ?? systemClock;
    this.store = new ObjectStore(options.revision, options.history);
    this.#lister = new Lister(this.store);
    this.tokens = new Set(options.tokens);
    this.streamsLists = options.streamsLists ?? true;
    this.hasProtobuf = options.hasProtobuf ?? true;
    this.#server = this.#create();
  }

  static async start(options: ApiServerOptions = {}): Promise<TestApiServer> {
    const server = new TestApiServer(options);
    await server.listen();
    return server;
  }

  get url(): string {
    return `${this.#options.certificate === undefined ? 'http' : 'https'}://127.0.0.1:${this.#port}`;
  }

  get host(): string {
    return `127.0.0.1:${this.#port}`;
  }

  put(...objects: readonly RawObject[]): void {
    for (const raw of objects) this.store.put(raw);
  }

  delete(kind: string, key: string): void {
    this.store.delete(kind, key);
  }

  /** How many requests of this kind came. */
  count(kind: RequestKind, resource?: string): number {
    return this.log.filter((entry) => entry.kind === kind && (resource ?? entry.resource) === entry.resource)
      .length;
  }

  watchesOf(resource: string): readonly Watch[] {
    return [...this.watches].filter((watch) => watch.resource.name === resource);
  }

  /** The history before now is forgotten, and pages too. */
  compact(): void {
    this.store.compact();
    this.#lister.forgetPages();
  }

  /** Every connection breaks; then there are other contents, at another revision. */
  replace(objects: readonly RawObject[], revision: number): void {
    this.#lister.forgetPages();
    this.store.replace(objects, revision);
    this.dropConnections();
  }

  dropConnections(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** On the port that it had before, if it had one. */
  async listen(): Promise<void> {
    this.#server = this.#create();
    const { network } = this.#options;
    if (network) {
      network.server = this.#server;
      this.#port = 6443;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(this.#port, '127.0.0.1', resolve);
    });
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  /** From now on connections are refused. */
  async close(): Promise<void> {
    const { network } = this.#options;
    if (network) network.server = undefined;
    const closed = new Promise((resolve) => {
      this.#server.close(resolve);
    });
    this.dropConnections();
    await closed;
  }

  #create(): Server {
    const name = this.#options.certificate;
    const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
      this.#answer(request, response).catch((error: unknown) => {
        if (error instanceof StatusError) sendStatus(response, error, this.#encodingFor(request));
        else response.destroy(error instanceof Error ? error : new Error(String(error)));
      });
    };
    const server =
      name === undefined
        ? createServer(onRequest)
        : createTlsServer(
            {
              cert: certificate(name),
              key: privateKey('server'),
              ca: certificate('ca'),
              requestCert: true,
              rejectUnauthorized: false,
            },
            onRequest,
          );
    server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
    return server;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://server');
    const query = new Map(url.searchParams);
    const isWatch = flag(query, 'watch');
    const [, namespace, kind = ''] =
      /^\/api\/v1\/namespaces\/([a-z0-9-]+)\/(pods|services)$/.exec(url.pathname) ?? [];
    const path = namespace === undefined ? url.pathname : `/api/v1/${kind}`;
    const resource = RESOURCES.find((each) => each.path === path);
    const listKind = isWatch ? (flag(query, 'sendInitialEvents') ? 'stream' : 'watch') : 'list';
    const entry: LoggedRequest = {
      method: request.method ?? '',
      path: url.pathname,
      query: Object.fromEntries(query),
      kind: resource !== undefined && request.method === 'GET' ? listKind : 'other',
      resource: resource?.name ?? '',
      headers: request.headers,
      status: 0,
    };
    this.log.push(entry);
    response.on('close', () => {
      entry.status = response.headersSent ? response.statusCode : 0;
    });
    let fault = this.faults.take(entry.kind, entry.resource);
    if (fault?.kind === 'do') {
      fault.action();
      fault = undefined;
    } else if (fault?.kind === 'late') {
      await this.#pause(fault.ms);
      fault = undefined;
    }
    const encoding = this.#encodingFor(request, resource);
    if (fault !== undefined && answerWithFault(fault, response, encoding)) return;
    if (HEALTH_PATHS.has(url.pathname)) {
      response.writeHead(200, {
        'cache-control': 'no-cache, private',
        'content-type': 'text/plain; charset=utf-8',
      });
      response.end('ok');
      return;
    }
    this.#authorise(request);
    if (request.method === 'POST') return this.#storeEvent(request, response);
    if (request.method === 'PATCH') return this.#patchEvent(request, response);
    const isServed = resource !== undefined && !this.#options.without?.includes(resource.name);
    if (!isServed || request.method !== 'GET') {
      throw notFound();
    }
    if (negotiate(request.headers.accept, this.hasProtobuf) === undefined)
      throw new StatusError(406, { reason: 'NotAcceptable', details: {} });
    if (namespace !== undefined)
      query.set(
        'fieldSelector',
        [query.get('fieldSelector') ?? [], `metadata.namespace=${namespace}`].flat().join(','),
      );
    const options = readListOptions(query, this.streamsLists !== false);
    if (options.watch) await this.#watch(resource, query, options, response, encoding);
    else await this.#list(resource, query, options, response, { fault, encoding });
  }

  /** JSON where a test put in what no real server could hold. */
  #encodingFor(request: IncomingMessage, resource?: ServedResource): ServedEncoding {
    const isEncodable = resource === undefined || this.store.isEncodable(resource);
    return negotiate(request.headers.accept, this.hasProtobuf && isEncodable) ?? 'json';
  }

  #authorise({ headers, socket }: IncomingMessage): void {
    const { tokens, clientCertificates } = this.#options;
    if (tokens === undefined && !clientCertificates) return;
    const token = /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1];
    if (token !== undefined && this.tokens.has(token)) return;
    if (clientCertificates && (socket as TLSSocket).authorized) return;
    throw new StatusError(401, { reason: 'Unauthorized', message: 'Unauthorized' });
  }

  async #storeEvent(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readJsonBody(request);
    const path = new URL(request.url ?? '/', 'http://server').pathname;
    if (!/^\/apis\/events\.k8s\.io\/v1\/namespaces\/[a-z0-9-]+\/events$/.test(path)) throw notFound();
    if (!request.headers['content-type']?.startsWith('application/json')) throw unsupportedMediaType();
    const name = nameOf(body);
    if (this.events.some((event) => event.path === path && nameOf(event.body) === name))
      throw new StatusError(409, { reason: 'AlreadyExists', message: `events "${name}" already exists` });
    this.events.push({ path, body });
    response.writeHead(201, { 'content-type': 'application/json' });
    response.end(JSON.stringify(body));
  }

  async #patchEvent(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const patch = await readJsonBody(request);
    const path = new URL(request.url ?? '/', 'http://server').pathname;
    const known = this.events.find((event) => `${event.path}/${nameOf(event.body)}` === path);
    if (!known) throw notFound();
    if (!request.headers['content-type']?.startsWith('application/merge-patch+json'))
      throw unsupportedMediaType();
    known.body = { ...(known.body as object), ...(patch as object) };
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(known.body));
  }

  async #list(
    resource: ServedResource,
    query: ReadonlyMap<string, string>,
    options: ListOptions,
    response: ServerResponse,
    { fault, encoding }: { readonly fault: Fault | undefined; readonly encoding: ServedEncoding },
  ): Promise<void> {
    const wanted = Number(options.resourceVersion || '0');
    if (options.match !== 'Exact') await this.#reached(wanted);
    const pieces = this.#lister.list(resource, readSelectors(resource.name, query), options, encoding);
    await sendPieces(response, pieces, fault, encoding);
  }

  async #watch(
    resource: ServedResource,
    query: ReadonlyMap<string, string>,
    options: ListOptions,
    response: ServerResponse,
    encoding: ServedEncoding,
  ): Promise<void> {
    const selector = readSelectors(resource.name, query);
    const refusal = options.sendInitialEvents ? await this.#streamRefusal(options) : undefined;
    const { store } = this;
    const watch = new Watch({ store, clock: this.#clock, resource, selector, options, response, encoding });
    if (refusal !== undefined) {
      response.writeHead(200, head(encoding, true));
      watch.fail(refusal);
      return;
    }
    this.watches.add(watch);
    response.on('close', () => this.watches.delete(watch));
    await watch.open();
  }

  /** The real one finds these out when its answer has begun. */
  async #streamRefusal({ resourceVersion }: ListOptions): Promise<StatusError | undefined> {
    if (this.streamsLists === 'noWatchProgress') return noWatchProgress();
    const wanted = Number(resourceVersion || '0');
    await this.#reached(wanted);
    return wanted > this.store.revision ? tooLarge(wanted, this.store.revision) : undefined;
  }

  /** A version that is not there yet is waited for, three seconds. */
  async #reached(wanted: number): Promise<void> {
    if (wanted > this.store.revision) await this.#pause(FRESHNESS_MS);
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#clock.schedule(ms, resolve);
    });
  }
}

async function readJsonBody(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return JSON.parse(Buffer.concat(chunks).toString('utf8'));
}

function nameOf(body: unknown): string | undefined {
  return (body as { readonly metadata?: { readonly name?: string } }).metadata?.name;
}

function unsupportedMediaType(): StatusError {
  return new StatusError(415, { reason: 'UnsupportedMediaType', details: {} });
}
