/** The body of a watch, or of a list, cut into JSON texts while it arrives. */
import { isMap, ownField, ownText } from '../../text/cursor.ts';
import { malformedAnswer, parseJson } from './failure.ts';

/** etcd holds no object above 1.5 MiB by default; what is ten times that is none. */
const MOST_BYTES = 16 * 1024 * 1024;

/** One text, whose bytes arrive in parts. */
class Parts {
  readonly #what: string;
  readonly #most: number;
  #parts: Uint8Array[] = [];
  #length = 0;

  constructor(what: string, most: number) {
    this.#what = what;
    this.#most = most;
  }

  add(part: Uint8Array): void {
    this.#length += part.length;
    if (this.#length > this.#most) {
      throw malformedAnswer(`${this.#what} is longer than ${this.#most} bytes`);
    }
    if (part.length > 0) this.#parts.push(part);
  }

  /** All of it, with a last part; the next part begins another text. */
  take(last: Uint8Array = Buffer.of()): string {
    this.add(last);
    const [first = last, ...others] = this.#parts;
    const bytes =
      others.length === 0
        ? Buffer.from(first.buffer, first.byteOffset, first.byteLength)
        : Buffer.concat(this.#parts, this.#length);
    this.#parts = [];
    this.#length = 0;
    return bytes.toString('utf8');
  }
}

const NEWLINE = 0x0a;

/** A watch's body cut into its frames: one JSON text per line. */
export class LineSplitter {
  readonly #line: Parts;

  constructor(mostBytes = MOST_BYTES) {
    this.#line = new Parts('a watch frame', mostBytes);
  }

  /** The lines that this chunk completes, without those that are blank. */
  *push(chunk: Uint8Array): Generator<string> {
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      const line = this.#line.take(chunk.subarray(from, end));
      from = end + 1;
      if (line.trim() !== '') yield line;
    }
    this.#line.add(chunk.subarray(from));
  }

  /** Call at the end of the body: a frame without its newline was cut off. */
  end(): void {
    if (this.#line.take().trim() !== '') throw malformedAnswer('the watch ended in the middle of a frame');
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const ITEMS = /^"items"\s*:\s*\[$/;

/** What stands around the items. */
export interface ListEnvelope {
  readonly kind: string;
  readonly resourceVersion: string;
  /** '' after the last page. */
  readonly continueToken: string;
  /** An answer without the field must not be taken for an empty list: that would delete the whole cluster. */
  readonly hasItems: boolean;
}

/**
 * A list's body cut into its items while it arrives.
 *
 * A list of a large cluster is hundreds of megabytes, most of which is not used. Here no more than one item is held
 * as text. Items are found by counting brackets; `JSON.parse` checks each of them, and at the end what stood around.
 */
export class ItemSplitter {
  readonly #item: Parts;
  /** Outside of the items: the last key of the outermost object, and what follows it. */
  readonly #field: Parts;
  /** What stands around the items, up to `#field`. */
  #envelope = '';
  #inItems = false;
  /** No item has come since the list began. */
  #isFirst = true;
  /** An item has come since the last comma. */
  #isTaken = false;
  #depth = 0;
  #inString = false;
  /** The next chunk begins with a character after a backslash. */
  #isEscaped = false;

  constructor(mostValueBytes = MOST_BYTES) {
    this.#item = new Parts('an item of the list', mostValueBytes);
    this.#field = new Parts('a field of the list', mostValueBytes);
  }

  /** The items that this chunk completes, parsed. */
  *push(chunk: Uint8Array): Generator {
    let from = 0;
    let at = this.#next(chunk, this.#isEscaped ? 1 : 0);
    for (; at < chunk.length; at = this.#next(chunk, at + 1)) {
      const byte = chunk[at];
      if (!this.#inItems) {
        const isList = byte === OPEN_BRACKET && this.#depth === 2;
        if (!isList && !this.#inString) continue;
        // A key begins, or the list that belongs to it.
        const end = isList ? at + 1 : at;
        const field = this.#field.take(chunk.subarray(from, end));
        this.#envelope += field;
        this.#inItems = isList && ITEMS.test(field);
        from = end;
      } else if (byte === COMMA || this.#depth < 2) {
        yield* this.#endItem(this.#item.take(chunk.subarray(from, at)), byte !== COMMA);
        from = byte === COMMA ? at + 1 : at;
      } else {
        yield this.#parseItem(this.#item.take(chunk.subarray(from, at + 1)));
        from = at + 1;
      }
    }
    this.#isEscaped = at > chunk.length;
    (this.#inItems ? this.#item : this.#field).add(chunk.subarray(from));
  }

  /** Skips what is nested deeper than the items: the index of the next byte that may matter, if there is one. */
  #next(chunk: Uint8Array, from: number): number {
    let depth = this.#depth;
    let inString = this.#inString;
    const { length } = chunk;
    let at = from;
    for (; at < length; at++) {
      const byte = chunk[at];
      if (inString) {
        if (byte === BACKSLASH) {
          at++;
        } else if (byte === QUOTE) {
          inString = false;
          if (depth === 2) break;
        }
      } else if (byte === QUOTE) {
        inString = true;
        if (depth === 1) break;
      } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
        depth++;
        if (depth === 2) break;
      } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
        depth--;
        if (depth <= 2) break;
      } else if (byte === COMMA && depth === 2) break;
    }
    this.#depth = depth;
    this.#inString = inString;
    return at;
  }

  /** Call at the end of the body. */
  end(): ListEnvelope {
    const text = this.#envelope + this.#field.take();
    if (this.#depth > 0 || text === '') throw malformedAnswer('the list ended before its last bracket');
    const envelope = parseJson(text, 'the list');
    if (!isMap(envelope)) throw malformedAnswer('the list is not a map');
    const items = ownField(envelope, 'items');
    // Go writes null for an empty list; of a list, the items have been cut out.
    const isList = Array.isArray(items) ? items.length === 0 : (items ?? null) === null;
    if (!isList) throw malformedAnswer('the items of the list are not a list');
    const metadata = ownField(envelope, 'metadata');
    return {
      kind: ownText(envelope, 'kind'),
      resourceVersion: ownText(metadata, 'resourceVersion'),
      continueToken: ownText(metadata, 'continue'),
      hasItems: items !== undefined,
    };
  }

  #parseItem(text: string): unknown {
    if (this.#isTaken) throw malformedAnswer('the list is not JSON');
    this.#isTaken = true;
    return parseJson(text, 'an item of the list');
  }

  /** `text` stands before a comma, or before the list's end: a number or a word, or nothing after another item. */
  *#endItem(text: string, isLast: boolean): Generator {
    const mayBeEmpty = this.#isTaken || (isLast && this.#isFirst);
    if (!mayBeEmpty || text.trim() !== '') yield this.#parseItem(text);
    this.#isTaken = false;
    this.#isFirst = isLast;
    this.#inItems = !isLast;
  }
}
