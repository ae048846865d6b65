/**
 * Netlink messages as bytes. Pure.
 *
 * A message is a header, a family's own fixed header, and attributes: 16-bit length, 16-bit type, value, padding to
 * four bytes. Headers are in the machine's byte order; values are in the order that their family defines.
 * Numbers from linux/netlink.h.
 */
import { JunctionError } from '../errors.ts';

export const HEADER_BYTES = 16;
export const ATTRIBUTE_HEADER_BYTES = 4;
const ATTRIBUTE_MAX_BYTES = 0xffff;
export const NLA_F_NESTED = 0x8000;
/** The type of an attribute, without the flags for a nest and for byte order. */
export const NLA_TYPE_MASK = 0x3fff;

export const NLM_F_REQUEST = 0x01;
export const NLM_F_ACK = 0x04;
export const NLM_F_DUMP_INTR = 0x10;
export const NLM_F_EXCL = 0x200;
export const NLM_F_CREATE = 0x400;
export const NLM_F_DUMP = 0x300;

export const NLMSG_NOOP = 1;
export const NLMSG_ERROR = 2;
export const NLMSG_DONE = 3;
export const NLMSG_OVERRUN = 4;

/** Of this machine. */
export const LITTLE_ENDIAN = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;

export interface MessageHeader {
  readonly type: number;
  readonly flags: number;
  readonly sequence: number;
}

export interface Message extends MessageHeader {
  /** The port id of the socket whose request caused it, usually the process id. */
  readonly sender?: number;
  readonly payload: Uint8Array;
}

/** Writes messages one after another into one buffer, which grows. */
export class MessageWriter {
  protected bytes: Uint8Array<ArrayBuffer>;
  /** Like `bytes`, replaced when the buffer grows. */
  protected view: DataView;
  protected used = 0;
  readonly #text = new TextEncoder();

  constructor(capacity = 4096) {
    this.bytes = new Uint8Array(capacity);
    this.view = new DataView(this.bytes.buffer);
  }

  /** In bytes. */
  get length(): number {
    return this.used;
  }

  /** Adds zeros, with padding; returns where they start. */
  protected reserve(size: number): number {
    const start = this.used;
    this.used += align(size);
    if (this.used > this.bytes.length) {
      const { bytes } = this;
      this.bytes = new Uint8Array(Math.max(this.used, bytes.length * 2));
      this.bytes.set(bytes.subarray(0, start));
      this.view = new DataView(this.bytes.buffer);
    }
    return start;
  }

  message(header: MessageHeader, payload: (writer: this) => void): this {
    const start = this.reserve(HEADER_BYTES);
    this.view.setUint16(start + 4, header.type, LITTLE_ENDIAN);
    this.view.setUint16(start + 6, header.flags, LITTLE_ENDIAN);
    this.view.setUint32(start + 8, header.sequence, LITTLE_ENDIAN);
    payload(this);
    this.view.setUint32(start, this.used - start, LITTLE_ENDIAN);
    return this;
  }

  /** A family's fixed header. */
  raw(value: Uint8Array): this {
    const start = this.reserve(value.length);
    this.bytes.set(value, start);
    return this;
  }

  attribute(type: number, value: Uint8Array): this {
    const start = this.#begin(type, value.length);
    this.bytes.set(value, start);
    return this;
  }

  /** NUL-terminated. */
  string(type: number, text: string): this {
    if (!isAscii(text)) return this.attribute(type, this.#text.encode(`${text}\0`));
    const start = this.#begin(type, text.length + 1);
    for (let index = 0; index < text.length; index++) this.bytes[start + index] = text.charCodeAt(index);
    return this;
  }

  /** Unsigned, of 1, 2 or 4 bytes. */
  integer(type: number, bytes: 1 | 2 | 4, value: number, isLittleEndian: boolean): this {
    const start = this.#begin(type, bytes);
    if (bytes === 4) this.view.setUint32(start, value, isLittleEndian);
    else if (bytes === 2) this.view.setUint16(start, value, isLittleEndian);
    else this.view.setUint8(start, value);
    return this;
  }

  u64be(type: number, value: bigint): this {
    const start = this.#begin(type, 8);
    this.view.setBigUint64(start, value);
    return this;
  }

  nested(type: number, body: (writer: this) => void): this {
    const start = this.openNest();
    body(this);
    return this.closeNest(start, type);
  }

  /** The same without a function. Returns what `closeNest` needs. */
  openNest(): number {
    return this.reserve(ATTRIBUTE_HEADER_BYTES);
  }

  /** `isKept`: also when nothing was written into it. */
  closeNest(start: number, type: number, isKept = true): this {
    if (!isKept && this.used === start + ATTRIBUTE_HEADER_BYTES) this.used = start;
    else this.#attributeHeader(start, type | NLA_F_NESTED, this.used - start);
    return this;
  }

  /** A view of what was written, valid until the next write. */
  finish(): Uint8Array<ArrayBuffer> {
    return this.bytes.subarray(0, this.used);
  }

  /** Returns where the value goes. Call it first: it may replace `bytes` and `view`. */
  #begin(type: number, size: number): number {
    const start = this.reserve(ATTRIBUTE_HEADER_BYTES + size);
    this.#attributeHeader(start, type, ATTRIBUTE_HEADER_BYTES + size);
    return start + ATTRIBUTE_HEADER_BYTES;
  }

  #attributeHeader(start: number, type: number, size: number): void {
    if (size > ATTRIBUTE_MAX_BYTES)
      throw malformedMessage(`attribute ${type & NLA_TYPE_MASK} of ${size} bytes is too long`);
    this.view.setUint16(start, size, LITTLE_ENDIAN);
    this.view.setUint16(start + 2, type, LITTLE_ENDIAN);
  }
}

/** The messages of one datagram. */
export function decodeMessages(bytes: Uint8Array): readonly Message[] {
  const view = viewOf(bytes);
  const messages: Message[] = [];
  for (let offset = 0; offset < bytes.length; ) {
    const left = bytes.length - offset;
    const length = left < HEADER_BYTES ? 0 : view.getUint32(offset, LITTLE_ENDIAN);
    if (length < HEADER_BYTES || length > left)
      throw malformedMessage(`a message claims ${length} of ${left} bytes`);
    messages.push({
      type: view.getUint16(offset + 4, LITTLE_ENDIAN),
      flags: view.getUint16(offset + 6, LITTLE_ENDIAN),
      sequence: view.getUint32(offset + 8, LITTLE_ENDIAN),
      sender: view.getUint32(offset + 12, LITTLE_ENDIAN),
      payload: bytes.subarray(offset + HEADER_BYTES, offset + length),
    });
    offset += align(length);
  }
  return messages;
}

/** The type of an acknowledgement, a refusal, or the end of a dump. */
export function isEnd(type: number): boolean {
  return type === NLMSG_ERROR || type === NLMSG_DONE;
}

/** The errno in an acknowledgement, positive; 0 is success. */
export function decodeErrno(payload: Uint8Array): number {
  if (payload.length < 4) throw malformedMessage(`an error message of ${payload.length} bytes`);
  return -viewOf(payload).getInt32(0, LITTLE_ENDIAN);
}

export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

export function align(length: number): number {
  return (length + 3) & ~3;
}

export function isAscii(text: string): boolean {
  for (let index = 0; index < text.length; index++) if (text.charCodeAt(index) > 0x7f) return false;
  return true;
}

export function malformedMessage(message: string): JunctionError {
  return new JunctionError('NETLINK_MALFORMED', `netlink: ${message}`);
}
