/** A list's body cut into its items while it arrives. No more than one item is held. */
import { ownText } from '../../../text/cursor.ts';
import { malformedAnswer } from '../failure.ts';
import type { ListEnvelope } from '../split.ts';
import { ByteWindow } from './byteWindow.ts';
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
  readonly #window: ByteWindow;
  #isBegun = false;
  #kind = '';
  #metadata: Readonly<Record<string, unknown>> = {};
  #hasList = false;
  /** How many bytes of the list are in no field that has begun. */
  #listLeft = 0;
  #header: Header | undefined;

  constructor(mostBytes?: number) {
    this.#window = new ByteWindow(mostBytes);
  }

  /** The items that this chunk completes. They are parts of it, or of a copy: good until the next chunk. */
  *push(chunk: Uint8Array): Generator<Uint8Array> {
    let isThere = this.#window.push(chunk);
    while (isThere) {
      const step = this.#step();
      if (typeof step === 'number') isThere = this.#window.wait(step);
      else if (step !== 'none') yield step;
    }
  }

  /** An item; `none` for what is not one; how many bytes are needed, where there are too few. */
  #step(): Uint8Array | 'none' | number {
    if (!this.#isBegun) return this.#begin();
    this.#header ??= this.#readHeader();
    return this.#header === undefined ? this.#window.left + 1 : this.#readValue(this.#header);
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

  #begin(): 'none' | number {
    const magic = this.#window.take(MAGIC.length, 'the list');
    if (magic === undefined) return MAGIC.length;
    if (!MAGIC.equals(magic)) throw malformedAnswer("the list does not begin as Kubernetes' protobuf does");
    this.#isBegun = true;
    return 'none';
  }

  /** Nothing: more has to come. */
  #readHeader(): Header | undefined {
    const window = this.#window;
    if (window.left < MOST_HEADER_BYTES && !isHeader(window.bytes, window.at)) return undefined;
    const isInList = this.#listLeft > 0;
    reader.load(window.bytes);
    try {
      reader.at = window.at;
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

  #readValue({ tag, length, isInList }: Header): Uint8Array | 'none' | number {
    if (!isInList && tag === RAW) {
      this.#header = undefined;
      if (this.#hasList) throw malformedAnswer('the answer has two lists');
      this.#hasList = true;
      this.#listLeft = length;
      return 'none';
    }
    const isRead = isInList ? tag === METADATA || tag === ITEM : tag === TYPE || tag === CONTENT_ENCODING;
    if (!isRead) return this.#pass(length);
    const isItem = isInList && tag === ITEM;
    const value = this.#window.take(length, isItem ? 'an item of the list' : 'a field of the list');
    if (value === undefined) return length;
    this.#header = undefined;
    if (isItem) return value;
    if (isInList) this.#metadata = decode(LIST_META, value);
    else if (tag === TYPE) this.#kind = ownText(decode(TYPE_META, value), 'kind');
    else refuseEncoding(value);
    return 'none';
  }

  /** Skips a value that nobody reads, without holding it. */
  #pass(length: number): 'none' | number {
    const window = this.#window;
    const count = Math.min(length, window.left);
    window.at += count;
    if (count === length) {
      this.#header = undefined;
      return 'none';
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
