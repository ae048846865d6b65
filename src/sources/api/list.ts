/** A list in pages. Each page is streamed into the store; nothing else of it is kept. */
import type { ApiClient, Query } from './client.ts';
import { ApiFailure, malformedAnswer, parseJson } from './failure.ts';
import type { RequestGuard } from './request.ts';
import type { Resource } from './resources.ts';
import type { ResourceStore } from './store.ts';
import { ownField } from '../../text/cursor.ts';

const PAGE_SIZE = '500';

export interface PagedList {
  readonly resourceVersion: string;
  readonly objects: number;
  readonly requests: number;
}

/**
 * Where a list may begin. `any`: what the server's cache holds will do. `latest`: what etcd holds now. Otherwise at
 * least this resourceVersion, so that the store does not go back in time when another server answers.
 */
export type NotOlderThan = 'any' | 'latest' | { readonly resourceVersion: string };

export async function listPages<T>(
  client: ApiClient,
  resource: Resource<T>,
  store: ResourceStore<T>,
  from: NotOlderThan,
  guard: RequestGuard,
): Promise<PagedList> {
  const take = (item: unknown): void => store.set(item);
  store.beginList();
  // With a version and a limit, servers before 1.33 read from etcd: every node at once, after a crash. Without the
  // limit the list comes from their cache, as it does for version 0.
  let page: Query = {
    ...firstPage(from),
    ...(from === 'latest' || from === 'any' ? { limit: PAGE_SIZE } : {}),
  };
  for (let requests = 1; ; requests++) {
    let envelope: ListEnvelope;
    try {
      envelope = await readPage(client, resource, take, page, guard);
    } catch (error) {
      // The pages left the server's memory while we read them, or another server of the same name does not know
      // their token. Everything at once needs neither.
      if (!isUnknownPage(error) || page['continue'] === undefined) throw error;
      store.beginList();
      page = firstPage(from);
      continue;
    }
    const { resourceVersion, continueToken } = envelope;
    if (continueToken === '') return { resourceVersion, objects: store.endList(), requests };
    // The token holds the version; giving one beside it is refused.
    page = { limit: PAGE_SIZE, continue: continueToken };
  }
}

/** The version of a list that is made now. */
export async function currentVersion<T>(
  client: ApiClient,
  resource: Resource<T>,
  guard: RequestGuard,
): Promise<string> {
  const { resourceVersion } = await readPage(client, resource, () => undefined, { limit: '1' }, guard);
  return resourceVersion;
}

function firstPage(from: NotOlderThan): Query {
  if (from === 'any') return { resourceVersion: '0' };
  if (from === 'latest') return {};
  return { resourceVersion: from.resourceVersion, resourceVersionMatch: 'NotOlderThan' };
}

function isUnknownPage(error: unknown): boolean {
  return error instanceof ApiFailure && (error.kind === 'expired' || error.kind === 'unsupported');
}

async function readPage<T>(
  client: ApiClient,
  { path, selectors, name, kind }: Resource<T>,
  take: (item: unknown) => void,
  page: Query,
  guard: RequestGuard,
): Promise<ListEnvelope> {
  const response = await client.get(path, { ...selectors, ...page }, { signal: guard.signal });
  guard.touch();
  if (response.status !== 200) throw await client.failureOf(response, `listing ${name}`);
  const splitter = new ItemSplitter();
  for await (const chunk of response.body) {
    guard.touch();
    for (const item of splitter.push(chunk)) take(item);
    const pause = guard.pause();
    if (pause) await pause;
  }
  const envelope = splitter.end();
  const isList = envelope.kind === `${kind}List` && envelope.hasItems && envelope.resourceVersion !== '';
  if (!isList)
    throw malformedAnswer(`listing ${name}: the answer is not a ${kind}List with a resourceVersion`);
  return envelope;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

const MOST_VALUE_BYTES = 16 * 1024 * 1024;

/** What stands around the items. */
export interface ListEnvelope {
  readonly kind: string;
  readonly resourceVersion: string;
  /** '' after the last page. */
  readonly continueToken: string;
  readonly remainingItemCount: number | undefined;
  /** An answer without the field must not be taken for an empty list: that would delete the whole cluster. */
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

/**
 * A list's body cut into its items while it arrives.
 *
 * A list of a large cluster is hundreds of megabytes, most of which is not used. Here no more than one item is held
 * as text. Only the outermost object and the array `items` are read here; each value inside is found by counting
 * brackets and handed to `JSON.parse`, which knows whether it is one.
 */
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
    if (this.#expected !== 'nothing') throw malformedAnswer('the list ended before its last bracket');
    const metadata = this.#envelope.get('metadata');
    const kind = this.#envelope.get('kind');
    const remaining = ownField(metadata, 'remainingItemCount');
    return {
      kind: typeof kind === 'string' ? kind : '',
      resourceVersion: text(ownField(metadata, 'resourceVersion')),
      continueToken: text(ownField(metadata, 'continue')),
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
    if (!isRight) throw malformedAnswer('the list is not JSON');
    this.#expected = next;
    return false;
  }

  #beginKey(byte: number): true {
    if (byte !== QUOTE) throw malformedAnswer('the list is not JSON');
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
    if (isItems && parsed !== null) throw malformedAnswer('the items of the list are not a list');
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
    if (this.#length > this.#most)
      throw malformedAnswer(`an item of the list is longer than ${this.#most} bytes`);
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

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
