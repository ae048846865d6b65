/**
 * A list's body cut into its items while it arrives.
 *
 * A list of a large cluster is hundreds of megabytes, most of which nobody reads. Here no more than one item is held
 * as text. Only the outermost object and the array `items` are read here; each value inside is found by counting
 * brackets and handed to `JSON.parse`, which knows whether it is one.
 */
import { malformed } from './failure.ts';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

const MEBIBYTE = 1024 * 1024;
const MOST_VALUE_BYTES = 16 * MEBIBYTE;

/** What stands around the items. */
export interface ListEnvelope {
  readonly kind: string;
  readonly resourceVersion: string;
  /** '' after the last page. */
  readonly continueToken: string;
  readonly remainingItemCount: number | undefined;
  /** Nobody may take an answer without the field for an empty list: that would delete the whole cluster. */
  readonly hasItems: boolean;
}

/** What may come next. */
type Expected =
  | 'object'
  | 'keyOrEnd'
  | 'key'
  | 'colon'
  | 'value'
  | 'commaOrEnd'
  | 'items'
  | 'itemOrEnd'
  | 'item'
  | 'itemCommaOrEnd'
  | 'nothing';

type Value = 'key' | 'value' | 'item';

export class ItemSplitter {
  readonly #most: number;
  readonly #envelope = new Map<string, unknown>();
  #expected: Expected = 'object';
  #key = '';
  #hasItems = false;

  /** The value that is being cut out, if any. */
  #value: Value | undefined;
  #parts: Uint8Array[] = [];
  #length = 0;
  #depth = 0;
  #inString = false;
  #escaped = false;
  #isScalar = false;

  constructor(mostValueBytes = MOST_VALUE_BYTES) {
    this.#most = mostValueBytes;
  }

  /** The items that this chunk completes, parsed. */
  *push(chunk: Uint8Array): Generator {
    let at = 0;
    while (at < chunk.length) {
      if (this.#value !== undefined) {
        const end = this.#endOfValue(chunk, at);
        this.#keep(chunk.subarray(at, end < 0 ? chunk.length : end));
        if (end < 0) return;
        at = end;
        const kind = this.#value;
        const parsed = this.#take();
        if (kind === 'item') yield parsed;
        else this.#settle(kind, parsed);
        continue;
      }
      const byte = chunk[at] ?? 0;
      if (!isSpace(byte) && this.#step(byte)) continue;
      at++;
    }
  }

  /** Call at the end of the body. */
  end(): ListEnvelope {
    if (this.#expected !== 'nothing') throw malformed('the list ended before its last bracket');
    const metadata = this.#envelope.get('metadata');
    const kind = this.#envelope.get('kind');
    const remaining = field(metadata, 'remainingItemCount');
    return {
      kind: typeof kind === 'string' ? kind : '',
      resourceVersion: text(field(metadata, 'resourceVersion')),
      continueToken: text(field(metadata, 'continue')),
      remainingItemCount: typeof remaining === 'number' ? remaining : undefined,
      hasItems: this.#hasItems,
    };
  }

  /** Takes one byte between values. True: a value begins with it. */
  #step(byte: number): boolean {
    switch (this.#expected) {
      case 'object':
        return this.#accept(byte === OPEN_BRACE, 'keyOrEnd');
      case 'keyOrEnd':
        if (byte === CLOSE_BRACE) return this.#accept(true, 'nothing');
        return this.#beginKey(byte);
      case 'key':
        return this.#beginKey(byte);
      case 'colon':
        return this.#accept(byte === COLON, this.#key === 'items' ? 'items' : 'value');
      case 'items':
        this.#hasItems = true;
        if (byte === OPEN_BRACKET) return this.#accept(true, 'itemOrEnd');
        return this.#begin('value', byte); // Go writes null for an empty list.
      case 'value':
        return this.#begin('value', byte);
      case 'commaOrEnd':
        return this.#accept(byte === COMMA || byte === CLOSE_BRACE, byte === COMMA ? 'key' : 'nothing');
      case 'itemOrEnd':
        if (byte === CLOSE_BRACKET) return this.#accept(true, 'commaOrEnd');
        return this.#begin('item', byte);
      case 'item':
        return this.#begin('item', byte);
      case 'itemCommaOrEnd':
        return this.#accept(byte === COMMA || byte === CLOSE_BRACKET, byte === COMMA ? 'item' : 'commaOrEnd');
      case 'nothing':
        return this.#accept(false, 'nothing');
    }
  }

  #accept(isRight: boolean, next: Expected): false {
    if (!isRight) throw malformed('the list is not JSON');
    this.#expected = next;
    return false;
  }

  #beginKey(byte: number): true {
    if (byte !== QUOTE) throw malformed('the list is not JSON');
    return this.#begin('key', byte);
  }

  #begin(value: Value, byte: number): true {
    this.#value = value;
    this.#isScalar = byte !== QUOTE && byte !== OPEN_BRACE && byte !== OPEN_BRACKET;
    this.#expected = value === 'key' ? 'colon' : value === 'value' ? 'commaOrEnd' : 'itemCommaOrEnd';
    return true;
  }

  #settle(kind: 'key' | 'value', parsed: unknown): void {
    if (kind === 'key') this.#key = text(parsed);
    else this.#envelope.set(this.#key, parsed);
    const isItems = kind === 'value' && this.#key === 'items';
    if (isItems && parsed !== null) throw malformed('the items of the list are not a list');
  }

  /** The index after the value's last byte; -1 when the value goes on in the next chunk. */
  #endOfValue(chunk: Uint8Array, from: number): number {
    if (this.#isScalar) return endOfScalar(chunk, from);
    const { length } = chunk;
    let depth = this.#depth;
    let inString = this.#inString;
    let at = from;
    if (this.#escaped) {
      this.#escaped = false;
      at++;
    }
    for (; at < length; at++) {
      const byte = chunk[at];
      if (inString) {
        if (byte === BACKSLASH) {
          at++;
          if (at === length) this.#escaped = true;
        } else if (byte === QUOTE) {
          inString = false;
          if (depth === 0) break;
        }
      } else if (byte === QUOTE) {
        inString = true;
      } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
        depth++;
      } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
        depth--;
        if (depth <= 0) break;
      }
    }
    const ended = at < length;
    this.#depth = ended ? 0 : depth;
    this.#inString = !ended && inString;
    return ended ? at + 1 : -1;
  }

  #keep(part: Uint8Array): void {
    this.#length += part.length;
    if (this.#length > this.#most) throw malformed(`an item of the list is longer than ${this.#most} bytes`);
    this.#parts.push(part);
  }

  #take(): unknown {
    const [first, ...others] = this.#parts;
    const bytes = first && others.length === 0 ? view(first) : Buffer.concat(this.#parts, this.#length);
    this.#parts = [];
    this.#length = 0;
    this.#value = undefined;
    return parseJson(bytes.toString('utf8'), 'an item of the list');
  }
}

export function parseJson(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw malformed(`${what} is not JSON`, error);
  }
}

function view({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}

function endOfScalar(chunk: Uint8Array, from: number): number {
  for (let at = from; at < chunk.length; at++) {
    const byte = chunk[at] ?? 0;
    if (byte === COMMA || byte === CLOSE_BRACE || byte === CLOSE_BRACKET || isSpace(byte)) return at;
  }
  return -1;
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

function field(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, key)
    ? Reflect.get(value, key)
    : undefined;
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
