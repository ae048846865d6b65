/** Bytes that arrive in chunks, and are read in pieces of known length. */
import { malformedAnswer } from '../failure.ts';
import { asBuffer } from './wire.ts';

/** etcd holds no object above 1.5 MiB by default; what is ten times that is none. */
const MOST_BYTES = 16 * 1024 * 1024;

/**
 * Holds no more than one piece, and joins the chunks of a piece once, when all of it is there: a piece that comes
 * byte by byte costs as much as its length.
 */
export class ByteWindow {
  /** What has arrived and was not taken. */
  bytes: Buffer = Buffer.alloc(0);
  at = 0;
  #parts: Buffer[] = [];
  #held = 0;
  /** So many bytes must have arrived before reading makes sense. */
  #needed = 1;
  readonly #most: number;

  constructor(mostBytes = MOST_BYTES) {
    this.#most = mostBytes;
  }

  get left(): number {
    return this.bytes.length - this.at;
  }

  /** Nothing is held. */
  get isEmpty(): boolean {
    return this.#held === 0 && this.left === 0;
  }

  /** True: there is enough to read on. */
  push(chunk: Uint8Array): boolean {
    const part = asBuffer(chunk);
    this.#parts.push(part);
    this.#held += part.length;
    if (this.#held < this.#needed) return false;
    this.bytes = this.#parts.length === 1 ? part : Buffer.concat(this.#parts, this.#held);
    this.at = 0;
    this.#parts = [];
    this.#held = 0;
    return true;
  }

  /** Waits for more: until there are so many bytes from here on. */
  wait(length: number): void {
    const rest = this.bytes.subarray(this.at);
    this.#parts = rest.length === 0 ? [] : [rest];
    this.#held = rest.length;
    this.#needed = length;
    this.bytes = Buffer.alloc(0);
    this.at = 0;
  }

  /** The next bytes, if they are there. */
  take(length: number, what: string): Buffer | undefined {
    if (length > this.#most) throw malformedAnswer(`${what} is longer than ${this.#most} bytes`);
    if (length > this.left) return undefined;
    const from = this.at;
    this.at += length;
    return this.bytes.subarray(from, this.at);
  }
}
