/** The wire format of protobuf: tags, numbers, lengths and texts, from a part of a buffer. What is not that throws. */
import { malformedAnswer } from '../failure.ts';
import { StringTable } from './stringTable.ts';

/** How a field's value is written; the lowest three bits of its tag. */
export const VARINT = 0;
export const FIXED64 = 1;
export const BYTES = 2;
export const GROUP = 3;
export const GROUP_END = 4;
export const FIXED32 = 5;

/** A number of 64 bits takes ten bytes at most. */
export const MOST_VARINT_BYTES = 10;
/** Of this many bytes, at seven bits each, a double holds every number exactly. */
const EXACT_VARINT_BYTES = 7;

const NOTHING = Buffer.alloc(0);
/** Set in each byte of a number but the last. */
const MORE = 0x80;

/**
 * Numbers of one byte, which most are, have a way of their own: the methods that are called most are short enough for
 * the compiler to inline, and compiling is a third of what reading a large list costs.
 */
export class WireReader {
  bytes: Buffer = NOTHING;
  at = 0;
  /** Nothing is read from here on. A part is read by setting it to the part's end meanwhile. */
  end = 0;
  /** Where the part that was loaded begins and ends. */
  #from = 0;
  #to = 0;
  readonly #strings = new StringTable();

  /** A part of `bytes`; without one, all of them. */
  load(bytes: Uint8Array, from = 0, end = bytes.length): void {
    this.bytes = asBuffer(bytes);
    this.at = from;
    this.end = end;
    this.#from = from;
    this.#to = end;
  }

  /** What was loaded can be freed. */
  unload(): void {
    this.bytes = NOTHING;
    this.at = 0;
    this.end = 0;
  }

  /** The number of a field, times 8, and how its value is written. */
  tag(): number {
    const tag = this.varint();
    return tag < 8 || tag > 0xffff_ffff ? this.#refuseTag(tag) : tag;
  }

  #refuseTag(tag: number): never {
    throw this.fault(`${tag} is not a tag`);
  }

  /** Without a sign. Above 2^53 it is not exact, and too large for whatever it is. */
  varint(): number {
    const first = this.at < this.end ? (this.bytes[this.at] ?? 0) : MORE;
    if (first >= MORE) return this.#longVarint();
    this.at++;
    return first;
  }

  #longVarint(): number {
    let value = 0;
    let factor = 1;
    for (let count = 0; count < MOST_VARINT_BYTES; count++) {
      const byte = this.#byte();
      value += (byte & 0x7f) * factor;
      if (byte < MORE) return value;
      factor *= 0x80;
    }
    throw this.fault(`a number has more than ${MOST_VARINT_BYTES} bytes`);
  }

  /** The lowest 32 bits, as Go takes them. */
  int32(): number {
    let value = 0;
    for (let count = 0; count < MOST_VARINT_BYTES; count++) {
      const byte = this.#byte();
      if (count < 5) value |= (byte & 0x7f) << (count * 7);
      if (byte < MORE) return value;
    }
    throw this.fault(`a number has more than ${MOST_VARINT_BYTES} bytes`);
  }

  int64(): number {
    const { at } = this;
    const value = this.varint();
    if (this.at - at <= EXACT_VARINT_BYTES) return value;
    let exact = 0n;
    for (let index = this.at - 1; index >= at; index--)
      exact = (exact << 7n) | BigInt((this.bytes[index] ?? 0) & 0x7f);
    return Number(BigInt.asIntN(64, exact));
  }

  bool(): boolean {
    return this.varint() !== 0;
  }

  /** Where the value that begins here with its length ends. */
  valueEnd(): number {
    const length = this.varint();
    const end = this.at + length;
    return end > this.end ? this.#refuseLength(length) : end;
  }

  #refuseLength(length: number): never {
    throw this.fault(`a value of ${length} bytes begins, and ${this.end - this.at} are left`);
  }

  /** The message that begins here with its length is read from now on. Returns what `end` is to be afterwards. */
  enter(): number {
    const outer = this.end;
    this.end = this.valueEnd();
    return outer;
  }

  text(): string {
    const end = this.valueEnd();
    const text = this.bytes.toString('utf8', this.at, end);
    this.at = end;
    return text;
  }

  /** A text that many objects repeat: one copy of it. */
  sharedText(): string {
    return this.sharedTextTo(this.valueEnd());
  }

  sharedTextTo(end: number): string {
    const text = this.#strings.text(this.bytes, this.at, end);
    this.at = end;
    return text;
  }

  /** What is known to be ASCII: less to do than for `text`. */
  asciiTo(end: number): string {
    const text = this.bytes.toString('latin1', this.at, end);
    this.at = end;
    return text;
  }

  /** Whether the text that begins here with its length is this one. Nothing is read. */
  isAt(text: Uint8Array, from: number, end: number): boolean {
    if (end - from !== text.length) return false;
    for (let index = 0; index < text.length; index++)
      if (this.bytes[from + index] !== text[index]) return false;
    return true;
  }

  /** The value of a field that nobody reads. */
  skip(wireType: number): void {
    if (wireType === BYTES) this.at = this.valueEnd();
    else this.#skipOther(wireType);
  }

  /** A group is skipped to its end, with those that it contains. */
  #skipOther(wireType: number): void {
    let depth = 0;
    let type = wireType;
    for (;;) {
      switch (type) {
        case VARINT:
          this.varint();
          break;
        case FIXED64:
          this.#pass(8);
          break;
        case BYTES:
          this.at = this.valueEnd();
          break;
        case GROUP:
          depth++;
          break;
        case GROUP_END:
          depth--;
          break;
        case FIXED32:
          this.#pass(4);
          break;
        default:
          throw this.fault(`wire type ${type} is not known`);
      }
      if (depth < 0) throw this.fault('a group ends that did not begin');
      if (depth === 0) return;
      type = this.tag() & 7;
    }
  }

  /** A failure that says where. */
  fault(what: string): Error {
    return malformedAnswer(`${what} (at byte ${this.at - this.#from} of ${this.#to - this.#from})`);
  }

  #pass(count: number): void {
    if (count > this.end - this.at) throw this.fault('it ends in the middle of a number');
    this.at += count;
  }

  #byte(): number {
    if (this.at >= this.end) throw this.fault('it ends in the middle of a number');
    return this.bytes[this.at++] ?? 0;
  }
}

export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
