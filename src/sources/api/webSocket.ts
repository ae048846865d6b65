/**
 * A WebSocket's frames (RFC 6455), from the client's side, over a connection that was upgraded. undici has a client of its
 * own, which says nothing of an answer other than 101: here that answer is the API server's reason.
 */
import { randomBytes } from 'node:crypto';
import type { Duplex } from 'node:stream';

const OPCODES = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;
const FINAL = 0x80;
const MASKED = 0x80;
const RESERVED = 0x70;
/** Larger than any message of an exec: the kubelet sends 32 KiB at most. */
const MOST_MESSAGE_BYTES = 16 * 1024 * 1024;

interface WebSocketClose {
  /** 1000: as agreed. 1006: without a word. */
  readonly code: number;
  readonly reason: string;
}

export class WebSocketConnection {
  readonly #socket: Duplex;
  readonly #closing: { value: WebSocketClose | undefined } = { value: undefined };

  /** `head`: what came with the answer already. */
  constructor(socket: Duplex, head: Buffer = Buffer.alloc(0)) {
    this.#socket = socket;
    if (head.length > 0) socket.unshift(head);
  }

  /** Why it ended, once `messages` has. */
  get closed(): WebSocketClose {
    return this.#closing.value ?? { code: 1006, reason: '' };
  }

  /** Each message, whole, to the end of the connection. */
  async *messages(): AsyncGenerator<Buffer> {
    const parser = new FrameParser();
    let parts: Buffer[] = [];
    let length = 0;
    try {
      for await (const chunk of this.#socket as AsyncIterable<Buffer>) {
        for (const { opcode, isFinal, payload } of parser.take(chunk)) {
          if (opcode === OPCODES.ping) this.#send(OPCODES.pong, payload);
          else if (opcode === OPCODES.close) {
            this.#closing.value = readClose(payload);
            this.#send(OPCODES.close, payload.subarray(0, 2));
            return;
          } else if (opcode !== OPCODES.pong) {
            length += payload.length;
            if (length > MOST_MESSAGE_BYTES) throw new Error('a message is too long');
            parts.push(payload);
            if (!isFinal) continue;
            yield Buffer.concat(parts);
            parts = [];
            length = 0;
          }
        }
      }
    } finally {
      this.#socket.destroy();
    }
  }

  /** Keeps load balancers from forgetting the connection. */
  ping(): void {
    this.#send(OPCODES.ping, Buffer.alloc(0));
  }

  close(): void {
    this.#send(OPCODES.close, Buffer.from([0x03, 0xe8]));
    this.#socket.end(() => this.#socket.destroy());
  }

  #send(opcode: number, payload: Buffer): void {
    if (!this.#socket.writable) return;
    this.#socket.write(encodeFrame(opcode, payload));
  }
}

function readClose(payload: Buffer): WebSocketClose {
  if (payload.length < 2) return { code: 1005, reason: '' };
  return { code: payload.readUInt16BE(0), reason: payload.toString('utf8', 2) };
}

/** A client masks what it sends. */
function encodeFrame(opcode: number, payload: Buffer): Buffer {
  const mask = randomBytes(4);
  const masked = Buffer.from(payload.map((byte, index) => byte ^ (mask[index % 4] ?? 0)));
  // Control frames, and nothing else is sent, have less than 126 bytes.
  return Buffer.concat([Buffer.from([FINAL | opcode, MASKED | payload.length]), mask, masked]);
}

interface Frame {
  readonly opcode: number;
  readonly isFinal: boolean;
  readonly payload: Buffer;
}

class FrameParser {
  #unread: Buffer[] = [];
  #length = 0;

  *take(chunk: Buffer): Generator<Frame> {
    this.#unread.push(chunk);
    this.#length += chunk.length;
    for (;;) {
      const frame = this.#next();
      if (frame === undefined) return;
      yield frame;
    }
  }

  #next(): Frame | undefined {
    if (this.#length < 2) return undefined;
    const all = this.#joined();
    const first = all.readUInt8(0);
    const second = all.readUInt8(1);
    if ((first & RESERVED) !== 0) throw new Error('a frame has an extension that was not agreed on');
    if ((second & MASKED) !== 0) throw new Error('a frame of the server is masked');
    const short = second & 0x7f;
    const lengthBytes = short === 126 ? 2 : short === 127 ? 8 : 0;
    if (all.length < 2 + lengthBytes) return undefined;
    const length =
      lengthBytes === 0 ? short : lengthBytes === 2 ? all.readUInt16BE(2) : Number(all.readBigUInt64BE(2));
    if (length > MOST_MESSAGE_BYTES) throw new Error('a message is too long');
    const from = 2 + lengthBytes;
    if (all.length < from + length) return undefined;
    this.#unread = [all.subarray(from + length)];
    this.#length = all.length - from - length;
    return {
      opcode: first & 0x0f,
      isFinal: (first & FINAL) !== 0,
      payload: all.subarray(from, from + length),
    };
  }

  #joined(): Buffer {
    const [first = Buffer.alloc(0), ...others] = this.#unread;
    const all = others.length === 0 ? first : Buffer.concat(this.#unread, this.#length);
    this.#unread = [all];
    return all;
  }
}
