/**
 * The subresource `exec` of pods, over WebSockets: the handshake, the channels of Kubernetes, and what goes wrong with both.
 * kube-apiserver passes the connection on to the kubelet, so that errors of a container come as status 500 before the
 * upgrade, and errors of a command on the status channel after it.
 */
import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { StatusError, statusObject } from './status.ts';

export interface ExecRequest {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly command: readonly string[];
  /** Of the client, in its order. */
  readonly protocols: readonly string[];
}

export interface ExecAnswer {
  readonly stdout?: readonly (string | Buffer)[];
  readonly stderr?: readonly string[];
  readonly exitCode?: number;
  /** The command could not be started: what the status channel says. */
  readonly failure?: string;
  /** The connection breaks before the status: by a reset, or by a close frame. */
  readonly lost?: 'reset' | 'close';
  /** Nothing more comes, and the connection stays. */
  readonly hangs?: boolean;
  /** Messages come in several frames, with pings between them. */
  readonly inFragments?: boolean;
  /** What the handshake answers instead of the right thing. */
  readonly handshake?: { readonly accept?: string; readonly protocol?: string };
}

export type ExecHandler = (request: ExecRequest) => ExecAnswer | Promise<ExecAnswer>;

const PATH = /^\/api\/v1\/namespaces\/([a-z0-9-]+)\/pods\/([a-z0-9.-]+)\/exec$/;
const SUFFIX = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const KNOWN = ['v5.channel.k8s.io', 'v4.channel.k8s.io', 'v3.channel.k8s.io', 'channel.k8s.io'];

/** `undefined`: this is no such request. */
export function readExec({ url = '/', headers }: IncomingMessage): ExecRequest | undefined {
  const { pathname, searchParams } = new URL(url, 'http://server');
  const [, namespace, pod] = PATH.exec(pathname) ?? [];
  if (namespace === undefined || pod === undefined) return undefined;
  const protocols = (headers['sec-websocket-protocol'] ?? '').split(',').map((name) => name.trim());
  return {
    namespace,
    pod,
    container: searchParams.get('container') ?? '',
    command: searchParams.getAll('command'),
    protocols,
  };
}

export function refuseUpgrade(socket: Duplex, error: StatusError): void {
  const body = `${JSON.stringify(statusObject(error.code, error.options))}\n`;
  const head = [
    `HTTP/1.1 ${error.code} ${error.options.reason ?? 'Error'}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
}

/** Resolves when the client has closed, or the answer is given. */
export async function answerExec(
  socket: Duplex,
  { headers }: IncomingMessage,
  request: ExecRequest,
  answer: ExecAnswer,
): Promise<void> {
  const protocol = answer.handshake?.protocol ?? KNOWN.find((each) => request.protocols.includes(each));
  if (protocol === undefined)
    return refuseUpgrade(
      socket,
      new StatusError(400, { reason: 'BadRequest', message: 'no known subprotocol' }),
    );
  const key = String(headers['sec-websocket-key']);
  const accept = createHash('sha1')
    .update(key + SUFFIX)
    .digest('base64');
  const head = [
    'HTTP/1.1 101 Switching Protocols',
    'upgrade: websocket',
    'connection: Upgrade',
    `sec-websocket-accept: ${answer.handshake?.accept ?? accept}`,
    `sec-websocket-protocol: ${protocol}`,
  ];
  socket.write(`${head.join('\r\n')}\r\n\r\n`);
  const frames = answer.inFragments === true ? inFragments : whole;
  // An empty message on the first channel says that the streams are there.
  send(socket, frames(1, Buffer.alloc(0)));
  for (const text of answer.stdout ?? []) send(socket, frames(1, Buffer.from(text)));
  for (const text of answer.stderr ?? []) send(socket, frames(2, Buffer.from(text)));
  if (answer.hangs === true) return;
  await new Promise((resolve) => setImmediate(resolve));
  if (answer.lost === 'reset') {
    socket.destroy();
    return;
  }
  if (answer.lost !== 'close') send(socket, frames(3, Buffer.from(JSON.stringify(statusOf(answer)))));
  socket.end(frame(8, true, Buffer.from([0x03, 0xe8])));
}

function statusOf({ exitCode = 0, failure }: ExecAnswer): unknown {
  if (failure !== undefined) return statusObject(500, { reason: 'InternalError', message: failure });
  if (exitCode === 0) return { metadata: {}, status: 'Success' };
  return {
    metadata: {},
    status: 'Failure',
    message: `command terminated with non-zero exit code: exit status ${exitCode}`,
    reason: 'NonZeroExitCode',
    details: { causes: [{ reason: 'ExitCode', message: String(exitCode) }] },
  };
}

function send(socket: Duplex, frames: readonly Buffer[]): void {
  for (const each of frames) socket.write(each);
}

function whole(channel: number, payload: Buffer): readonly Buffer[] {
  return [frame(2, true, Buffer.concat([Buffer.from([channel]), payload]))];
}

function inFragments(channel: number, payload: Buffer): readonly Buffer[] {
  const half = Math.floor(payload.length / 2);
  return [
    frame(2, false, Buffer.concat([Buffer.from([channel]), payload.subarray(0, half)])),
    frame(9, true, Buffer.from('are you there')),
    frame(0, true, payload.subarray(half)),
  ];
}

/** A server masks nothing. */
function frame(opcode: number, isFinal: boolean, payload: Buffer): Buffer {
  const first = (isFinal ? 0x80 : 0) | opcode;
  if (payload.length < 126) return Buffer.concat([Buffer.from([first, payload.length]), payload]);
  const head = Buffer.alloc(payload.length < 65_536 ? 4 : 10);
  head[0] = first;
  if (payload.length < 65_536) {
    head[1] = 126;
    head.writeUInt16BE(payload.length, 2);
  } else {
    head[1] = 127;
    head.writeBigUInt64BE(BigInt(payload.length), 2);
  }
  return Buffer.concat([head, payload]);
}
