/**
 * What kube-apiserver 1.36.4 answered, over etcd 3.4.23 and 3.5.30, as small replies: status, headers, order of events and
 * shape on the wire are the real ones, the objects are made up. Lists are indented, as they are for people who ask with
 * curl: whoever reads them must not depend on spaces.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { MemoryNetwork } from '../../support/apiServer/memoryNetwork.ts';
import { statusObject } from '../../support/apiServer/status.ts';

export interface Reply {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string;
  /** It goes on: more may come, or nothing. */
  readonly stays?: boolean;
}

export interface Asked {
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly authorization: string | undefined;
}

const LIST_KINDS: Readonly<Record<string, readonly [kind: string, apiVersion: string]>> = {
  services: ['Service', 'v1'],
  nodes: ['Node', 'v1'],
  endpointslices: ['EndpointSlice', 'discovery.k8s.io/v1'],
  servicecidrs: ['ServiceCIDR', 'networking.k8s.io/v1'],
};

/** Empty parts of a bookmark, by resource. */
const ZERO: Readonly<Record<string, object>> = {
  services: { spec: {}, status: { loadBalancer: {} } },
  nodes: { spec: {}, status: {} },
  endpointslices: { addressType: '', endpoints: null, ports: null },
  servicecidrs: { spec: {}, status: {} },
};

export interface Item {
  readonly metadata: { readonly name: string; readonly resourceVersion: string };
  readonly [field: string]: unknown;
}

export function service(name: string, clusterIP: string, version: number): Item {
  const metadata = { name, namespace: 'lab', uid: name, resourceVersion: String(version) };
  const ports = [{ name: 'http', protocol: 'TCP', port: 80, targetPort: 8080 }];
  const spec = { ports, clusterIP, clusterIPs: [clusterIP], type: 'ClusterIP', sessionAffinity: 'None' };
  return { metadata, spec, status: { loadBalancer: {} } };
}

export function list(
  resource: string,
  version: number,
  items: readonly Item[],
  more: { readonly continue?: string; readonly remainingItemCount?: number } = {},
): Reply {
  const [kind = '', apiVersion = ''] = LIST_KINDS[resource] ?? [];
  const metadata = { resourceVersion: String(version), ...more };
  const body = { kind: `${kind}List`, apiVersion, metadata, items };
  return { status: 200, body: `${JSON.stringify(body, undefined, 2)}\n` };
}

export function event(resource: string, type: string, item: Item): string {
  const [kind, apiVersion] = LIST_KINDS[resource] ?? [];
  return `${JSON.stringify({ type, object: { kind, apiVersion, ...item } })}\n`;
}

export function bookmark(resource: string, version: number, annotations?: object): string {
  const metadata = { resourceVersion: String(version), ...(annotations && { annotations }) };
  const [kind, apiVersion] = LIST_KINDS[resource] ?? [];
  return `${JSON.stringify({ type: 'BOOKMARK', object: { kind, apiVersion, metadata, ...ZERO[resource] } })}\n`;
}

/** Every object, and then the mark that these were all. */
export function streamedList(resource: string, version: number, items: readonly Item[]): string {
  const added = items.map((item) => event(resource, 'ADDED', item)).join('');
  return added + bookmark(resource, version, { 'k8s.io/initial-events-end': 'true' });
}

export function watch(body = ''): Reply {
  return { status: 200, body, stays: true };
}

function status(code: number, reason: string, message: string, details?: Record<string, unknown>): object {
  return statusObject(code, { reason, message, ...(details && { details }) });
}

function inStream(object: object): Reply {
  return { status: 200, body: `${JSON.stringify({ type: 'ERROR', object })}\n` };
}

function refusal(code: number, object: object, headers: Readonly<Record<string, string>> = {}): Reply {
  return { status: code, headers, body: `${JSON.stringify(object, undefined, 2)}\n` };
}

const TOO_LARGE = {
  causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
  retryAfterSeconds: 1,
};

export const REPLIES = {
  /** Of every etcd before 3.4.31, and 3.5 before 3.5.13. */
  streamRefused: inStream(
    status(
      500,
      'InternalError',
      'a watch stream was requested by the client but the required storage feature RequestWatchProgress is disabled',
    ),
  ),
  tooOld: inStream(status(410, 'Expired', 'too old resource version: 20 (105)')),
  fromTheFuture: refusal(
    504,
    status(504, 'Timeout', 'Timeout: Too large resource version: 999, current: 73', TOO_LARGE),
    { 'retry-after': '1' },
  ),
  streamFromTheFuture: inStream(
    status(504, 'Timeout', 'Timeout: Too large resource version: 999, current: 73', TOO_LARGE),
  ),
  badContinue: refusal(
    400,
    status(400, 'BadRequest', 'invalid continue token: continue key is not valid: not JSON'),
  ),
  unauthorized: refusal(401, status(401, 'Unauthorized', 'Unauthorized')),
  noSuchVersion: refusal(
    404,
    status(404, 'NotFound', 'the server could not find the requested resource', {}),
  ),
} as const;

/** Answers each request as the script says; the same question may be answered otherwise the next time. */
export function playScript(
  network: MemoryNetwork,
  script: (asked: Asked) => Reply,
): { readonly url: string; readonly asked: readonly Asked[] } {
  const asked: Asked[] = [];
  network.server = createServer((request: IncomingMessage, response: ServerResponse) => {
    const url = new URL(request.url ?? '/', 'http://server');
    const query = Object.fromEntries(url.searchParams);
    const question = { path: url.pathname, query, authorization: request.headers.authorization };
    asked.push(question);
    const { status: code, headers, body, stays } = script(question);
    const head = { 'cache-control': 'no-cache, private', 'content-type': 'application/json', ...headers };
    response.writeHead(code, head);
    response.flushHeaders();
    response.write(body);
    if (!stays) response.end();
  });
  return { url: 'http://127.0.0.1:6443', asked };
}
