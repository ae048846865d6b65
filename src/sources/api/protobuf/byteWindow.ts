/** Bytes that arrive in chunks, and are read in pieces of known length. */
import { malformedAnswer } from '../failure.ts';
import { asBuffer } from './wire.ts';

/** etcd holds no object above 1.5 MiB by default; what is ten times that is none. */
const MOST_BYTES = 16 * 1024 * 1024;

const NOTHING = Buffer.alloc(0);

/** Gets a part of the bytes. A view of each part would be an object of its own, and there are tens of thousands. */
export type TakePart = (bytes: Buffer, from: number, end: number) => void;

/**
 * Holds no more than one piece. Only a piece that lies in several chunks is copied, and that once, when all of it is
 * there: one that comes byte by byte costs as much as its length.
 */
export class ByteWindow {
  /** What can be read, from `at` on. */
  bytes: Buffer = NOTHING;
  at = 0;
  /** The rest of the last chunk, after a piece that ends in it. */
  #rest: Buffer = NOTHING;
  /** The beginning of a piece. */
  #parts: Buffer[] = [];
  #held = 0;
  /** How long that piece is. */
  #needed = 0;

  get left(): number {
    return this.bytes.length - this.at;
  }

  /** Nothing is held. */
  get isEmpty(): boolean {
    return this.#held === 0 && this.left === 0 && this.#rest.length === 0;
  }

  /** True: there is something to read. */
  push(chunk: Uint8Array): boolean {
    return this.#fill(asBuffer(chunk));
  }

  /** So many bytes are needed from here on. True: they are there now; else they may be after the next chunk. */
  wait(length: number): boolean {
    const piece = this.bytes.subarray(this.at);
    const rest = this.#rest;
    this.#rest = NOTHING;
    this.#parts = piece.length === 0 ? [] : [piece];
    this.#held = piece.length;
    this.#needed = length;
    this.bytes = NOTHING;
    this.at = 0;
    return rest.length > 0 && this.#fill(rest);
  }

  /** Whether the next bytes are there. More than a piece may have are refused. */
  has(length: number, what: string): boolean {
    if (length > MOST_BYTES) throw malformedAnswer(`${what} is longer than ${MOST_BYTES} bytes`);
    return length <= this.left;
  }

  #fill(chunk: Buffer): boolean {
    if (this.#held === 0) {
      this.bytes = chunk;
      this.at = 0;
      return chunk.length > 0;
    }
    const missing = this.#needed - this.#held;
    if (chunk.length < missing) {
      this.#parts.push(chunk);
      this.#held += chunk.length;
      return false;
    }
    this.#parts.push(chunk.subarray(0, missing));
    this.bytes = Buffer.concat(this.#parts, this.#needed);
    this.at = 0;
    this.#rest = chunk.subarray(missing);
    this.#parts = [];
    this.#held = 0;
    return true;
  }
}
