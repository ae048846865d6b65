/** A list's body cut into its items while it arrives. No more than one item is held. */
import { ownText } from '../../../text/cursor.ts';
import { malformedAnswer } from '../failure.ts';
import type { ListEnvelope } from '../split.ts';
import { ByteWindow, type TakePart } from './byteWindow.ts';
import { decode } from './decode.ts';
import { CONTENT_ENCODING, MAGIC, RAW, refuseEncoding, TYPE } from './envelope.ts';
import { LIST_META, TYPE_META } from './messages.ts';
import { BYTES, FIXED32, FIXED64, GROUP, GROUP_END, MOST_VARINT_BYTES, VARINT, WireReader } from './wire.ts';

/** Of every list: tags of the fields. */
const METADATA = (1 << 3) | BYTES;
const ITEM = (2 << 3) | BYTES;

/** A field whose value comes next. */
interface Header {
  readonly tag: number;
  /** Of the value. */
  readonly length: number;
  /** It is a field of the list, not of the envelope. */
  readonly isInList: boolean;
}

const MOST_HEADER_BYTES = 2 * MOST_VARINT_BYTES;
const reader = new WireReader();

export class ListSplitter {
  readonly #window = new ByteWindow();
  #isBegun = false;
  #kind = '';
  #metadata: Readonly<Record<string, unknown>> = {};
  #hasList = false;
  /** How many bytes of the list are in no field that has begun. */
  #listLeft = 0;
  #header: Header | undefined;

  /** `take` is called with each item that this chunk completes: a part of it, or of a copy, good until the next chunk. */
  push(chunk: Uint8Array, take: TakePart): void {
    let isThere = this.#window.push(chunk);
    while (isThere) {
      const missing = this.#step(take);
      if (missing > 0) isThere = this.#window.wait(missing);
    }
  }

  /** Returns how many bytes are needed, where there are too few. */
  #step(take: TakePart): number {
    if (!this.#isBegun) return this.#begin();
    this.#header ??= this.#readHeader();
    return this.#header === undefined ? this.#window.left + 1 : this.#readValue(this.#header, take);
  }

  /** Call at the end of the body. */
  end(): ListEnvelope {
    const isCut = !this.#window.isEmpty || this.#header !== undefined || this.#listLeft > 0;
    if (isCut || !this.#isBegun) throw malformedAnswer('the list ended before its last byte');
    return {
      kind: this.#kind,
      resourceVersion: ownText(this.#metadata, 'resourceVersion'),
      continueToken: ownText(this.#metadata, 'continue'),
      hasItems: this.#hasList,
    };
  }

  #begin(): number {
    const magic = this.#take(MAGIC.length, 'the list');
    if (magic === undefined) return MAGIC.length;
    if (!MAGIC.equals(magic)) throw malformedAnswer("the list does not begin as Kubernetes' protobuf does");
    this.#isBegun = true;
    return 0;
  }

  /** The next bytes, if they are there. */
  #take(length: number, what: string): Buffer | undefined {
    const window = this.#window;
    if (!window.has(length, what)) return undefined;
    window.at += length;
    return window.bytes.subarray(window.at - length, window.at);
  }

  /** Nothing: more has to come. */
  #readHeader(): Header | undefined {
    const window = this.#window;
    if (window.left < MOST_HEADER_BYTES && !isHeader(window.bytes, window.at)) return undefined;
    const isInList = this.#listLeft > 0;
    reader.load(window.bytes, window.at);
    try {
      const tag = reader.tag();
      const wireType = tag & 7;
      const length = wireType === BYTES ? reader.varint() : 0;
      // A group may end anywhere; Kubernetes has none.
      if (wireType === GROUP || wireType === GROUP_END) throw reader.fault('a group begins in the list');
      if (wireType !== BYTES) reader.skip(wireType);
      if (isInList) this.#listLeft -= reader.at - window.at + length;
      if (this.#listLeft < 0) throw malformedAnswer('a field goes beyond the end of the list');
      window.at = reader.at;
      return { tag, length, isInList };
    } finally {
      reader.unload();
    }
  }

  #readValue({ tag, length, isInList }: Header, take: TakePart): number {
    if (!isInList && tag === RAW) {
      this.#header = undefined;
      if (this.#hasList) throw malformedAnswer('the answer has two lists');
      this.#hasList = true;
      this.#listLeft = length;
      return 0;
    }
    const isRead = isInList ? tag === METADATA || tag === ITEM : tag === TYPE || tag === CONTENT_ENCODING;
    if (!isRead) return this.#pass(length);
    if (isInList && tag === ITEM) return this.#readItem(length, take);
    const value = this.#take(length, 'a field of the list');
    if (value === undefined) return length;
    this.#header = undefined;
    if (isInList) this.#metadata = decode(LIST_META, value);
    else if (tag === TYPE) this.#kind = ownText(decode(TYPE_META, value), 'kind');
    else refuseEncoding(value.length);
    return 0;
  }

  #readItem(length: number, take: TakePart): number {
    const window = this.#window;
    if (!window.has(length, 'an item of the list')) return length;
    this.#header = undefined;
    const from = window.at;
    window.at += length;
    take(window.bytes, from, window.at);
    return 0;
  }

  /** Skips a value that nobody reads, without holding it. */
  #pass(length: number): number {
    const window = this.#window;
    const count = Math.min(length, window.left);
    window.at += count;
    if (count === length) {
      this.#header = undefined;
      return 0;
    }
    if (this.#header !== undefined) this.#header = { ...this.#header, length: length - count };
    return 1;
  }
}

/** Whether a tag, and the number that belongs to it, are there as a whole. */
function isHeader(bytes: Uint8Array, from: number): boolean {
  const tagEnd = varintEnd(bytes, from);
  if (tagEnd === undefined) return false;
  const wireType = (bytes[from] ?? 0) & 7;
  if (wireType === VARINT || wireType === BYTES) return varintEnd(bytes, tagEnd) !== undefined;
  return wireType !== FIXED64 && wireType !== FIXED32
    ? true
    : bytes.length - tagEnd >= (wireType === FIXED64 ? 8 : 4);
}

function varintEnd(bytes: Uint8Array, from: number): number | undefined {
  for (let at = from; at < bytes.length; at++) if ((bytes[at] ?? 0) < 0x80) return at + 1;
  return undefined;
}
