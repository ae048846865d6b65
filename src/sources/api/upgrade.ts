/** Asks a server to turn a connection into a WebSocket. */
import { createHash, randomBytes } from 'node:crypto';
import type { Duplex } from 'node:stream';
import type { Dispatcher } from 'undici';
import { malformedAnswer } from './failure.ts';
import { WebSocketConnection } from './webSocket.ts';

interface UpgradeRequest {
  readonly origin: string;
  /** With the query. */
  readonly path: string;
  readonly userAgent: string;
  readonly authorization: string | undefined;
  /** The subprotocols, the best first. */
  readonly protocols: readonly string[];
}

export type UpgradeAnswer =
  | { readonly status: 101; readonly protocol: string; readonly connection: WebSocketConnection }
  /** Any other: why not. */
  | { readonly status: number; readonly connection?: undefined; readonly text: string };

/** RFC 6455, 1.3 */
const ACCEPT_SUFFIX = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const MOST_REASON_BYTES = 64 * 1024;

export function upgrade(
  dispatcher: Dispatcher,
  request: UpgradeRequest,
  signal: AbortSignal,
): Promise<UpgradeAnswer> {
  const { origin, path, userAgent, authorization, protocols } = request;
  const key = randomBytes(16).toString('base64');
  const headers = {
    'user-agent': userAgent,
    ...(authorization !== undefined && { authorization }),
    'sec-websocket-key': key,
    'sec-websocket-version': '13',
    'sec-websocket-protocol': protocols.join(', '),
  };
  return new Promise((resolve, reject) => {
    let status = 0;
    const chunks: Buffer[] = [];
    let length = 0;
    let abort = (): void => reject(signal.reason);
    const onAbort = (): void => abort();
    const settled = (): void => signal.removeEventListener('abort', onAbort);
    signal.addEventListener('abort', onAbort);
    dispatcher.dispatch(
      { origin, path, method: 'GET', upgrade: 'websocket', headers },
      {
        onRequestStart: (controller) => {
          abort = () => controller.abort(signal.reason instanceof Error ? signal.reason : new Error('ended'));
          if (signal.aborted) abort();
        },
        onRequestUpgrade: (_, __, answered, socket) => {
          settled();
          const protocol = String(answered['sec-websocket-protocol'] ?? '');
          const problem = problemOf(answered['sec-websocket-accept'], key, protocol, protocols);
          if (problem === undefined) {
            resolve({ status: 101, protocol, connection: new WebSocketConnection(socket) });
            return;
          }
          abandon(socket);
          reject(malformedAnswer(`${origin}: ${problem}`));
        },
        onResponseStart: (_, code) => {
          status = code;
        },
        onResponseData: (_, chunk) => {
          length += chunk.length;
          if (length <= MOST_REASON_BYTES) chunks.push(chunk);
        },
        onResponseEnd: () => {
          settled();
          resolve({ status, text: Buffer.concat(chunks).toString('utf8') });
        },
        onResponseError: (_, error) => {
          settled();
          reject(signal.aborted ? signal.reason : error);
        },
      },
    );
  });
}

function problemOf(
  accept: string | string[] | undefined,
  key: string,
  protocol: string,
  protocols: readonly string[],
): string | undefined {
  const expected = createHash('sha1')
    .update(key + ACCEPT_SUFFIX)
    .digest('base64');
  if (accept !== expected) return 'the answer to the upgrade is not that of a WebSocket server';
  if (!protocols.includes(protocol))
    return `the server chose the protocol "${protocol}", which was not offered`;
  return undefined;
}

function abandon(socket: Duplex): void {
  socket.on('error', () => undefined);
  socket.destroy();
}
