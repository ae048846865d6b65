/** Numbers, texts and addresses one after the other, as few bytes. Whatever is read back: what makes no sense is `undefined`. */
import { type Ip, ipOfBytes, parseBytes } from '../model/ip.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const DOT = 0x2e;
const ZERO = 0x30;
const LAST_ASCII = 0x7f;

/** In a buffer that grows and is used again. */
export class ByteWriter {
  #bytes = new Uint8Array(1024);
  #length = 0;
  /** Texts of this value, in the order in which they came. */
  readonly #texts = new Map<string, number>();

  begin(): void {
    this.#length = 0;
    this.#texts.clear();
  }

  /** Valid until the next `begin`. */
  get bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  byte(value: number): void {
    this.#reserve(1);
    this.#bytes[this.#length++] = value;
  }

  /** Whole, and not negative. */
  number(value: number): void {
    this.#reserve(8);
    let left = value;
    for (; left > 0x7f; left = Math.floor(left / 0x80)) this.#bytes[this.#length++] = (left % 0x80) | 0x80;
    this.#bytes[this.#length++] = left;
  }

  raw(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  /** The second time, a number. */
  text(value: string): void {
    const known = this.#texts.get(value);
    if (known !== undefined) return this.number(known);
    this.#texts.set(value, this.#texts.size + 1);
    this.number(0);
    if (this.#ascii(value)) return;
    const bytes = encoder.encode(value);
    this.number(bytes.length);
    this.raw(bytes);
  }

  /** Returns false where it is not; then nothing was written. Short texts are written so in a quarter of the time. */
  #ascii(value: string): boolean {
    const start = this.#length;
    this.number(value.length);
    this.#reserve(value.length);
    for (let index = 0; index < value.length; index++) {
      const code = value.charCodeAt(index);
      if (code > LAST_ASCII) {
        this.#length = start;
        return false;
      }
      this.#bytes[this.#length++] = code;
    }
    return true;
  }

  address(ip: Ip): void {
    if (ip.includes(':')) {
      const bytes = parseBytes(ip) ?? new Uint8Array();
      this.byte(bytes.length);
      return this.raw(bytes);
    }
    // A large cluster has hundreds of thousands of these.
    this.#reserve(5);
    this.#bytes[this.#length++] = 4;
    let octet = 0;
    for (let index = 0; index < ip.length; index++) {
      const code = ip.charCodeAt(index);
      if (code !== DOT) {
        octet = octet * 10 + code - ZERO;
        continue;
      }
      this.#bytes[this.#length++] = octet;
      octet = 0;
    }
    this.#bytes[this.#length++] = octet;
  }

  #reserve(count: number): void {
    if (this.#length + count <= this.#bytes.length) return;
    const larger = new Uint8Array(2 * (this.#length + count));
    larger.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = larger;
  }
}

/** Thrown while reading, and caught by `readAll` and `readSome`. */
export class Unreadable extends Error {}

/** Reads what a `ByteWriter` wrote, in the same order. */
export class ByteReader {
  readonly #bytes: Uint8Array;
  #offset = 0;
  readonly #texts: string[] = [];

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#offset === this.#bytes.length;
  }

  byte(): number {
    const value = this.#bytes[this.#offset++];
    if (value === undefined) throw new Unreadable();
    return value;
  }

  number(): number {
    let value = 0;
    for (let factor = 1; factor < 2 ** 49; factor *= 0x80) {
      const next = this.byte();
      value += (next & 0x7f) * factor;
      if (next < 0x80) return value;
    }
    throw new Unreadable();
  }

  raw(length: number): Uint8Array {
    if (this.#offset + length > this.#bytes.length) throw new Unreadable();
    const bytes = this.#bytes.subarray(this.#offset, this.#offset + length);
    this.#offset += length;
    return bytes;
  }

  text(): string {
    const known = this.number();
    const value = known > 0 ? this.#texts[known - 1] : decoder.decode(this.raw(this.number()));
    if (value === undefined) throw new Unreadable();
    if (known === 0) this.#texts.push(value);
    return value;
  }

  address(): Ip {
    const ip = ipOfBytes(this.raw(this.byte()));
    if (ip === undefined) throw new Unreadable();
    return ip;
  }

  /** Each takes a byte at least: no count makes a list that is longer than its bytes. */
  list<T>(read: () => T): readonly T[] {
    const length = this.number();
    if (length > this.#bytes.length - this.#offset) throw new Unreadable();
    return Array.from({ length }, read);
  }

  choice<T>(all: readonly T[], index: number): T {
    const found = all[index];
    if (found === undefined) throw new Unreadable();
    return found;
  }
}

/** `undefined` where it cannot be read, or something is left. */
export function readAll<T>(bytes: Uint8Array, read: (reader: ByteReader) => T): T | undefined {
  return readSome(bytes, (reader) => {
    const value = read(reader);
    if (!reader.isAtEnd) throw new Unreadable();
    return value;
  });
}

export function readSome<T>(bytes: Uint8Array, read: (reader: ByteReader) => T): T | undefined {
  try {
    return read(new ByteReader(bytes));
  } catch (error) {
    if (error instanceof Unreadable) return undefined;
    throw error;
  }
}
