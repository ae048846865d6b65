/** The body of a watch in JSON, cut into its frames while it arrives; that of a list, read when all of it is there. */
import { isMap, ownField, ownText } from '../../text/cursor.ts';
import { malformedAnswer, parseJson } from './failure.ts';

/** etcd holds no object above 1.5 MiB by default; what is ten times that is none. */
const MOST_BYTES = 16 * 1024 * 1024;

/** The longest text that Node can hold has this many bytes. */
export const MOST_LIST_BYTES = 0x1fff_ffe8;

/** One text, whose bytes arrive in parts. */
export class Parts {
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
  readonly #line = new Parts('a watch frame', MOST_BYTES);

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

/** What stands around the items of a list. */
export interface ListEnvelope {
  readonly kind: string;
  readonly resourceVersion: string;
  /** '' after the last page. */
  readonly continueToken: string;
  /** An answer without the field must not be taken for an empty list: that would delete the whole cluster. */
  readonly hasItems: boolean;
}

/** A list's body, whole: in JSON it is asked for in pages of 500. */
export function readList(text: string): {
  readonly items: readonly unknown[];
  readonly envelope: ListEnvelope;
} {
  const list = parseJson(text, 'the list');
  if (!isMap(list)) throw malformedAnswer('the list is not a map');
  const items = ownField(list, 'items');
  // Go writes null for an empty list.
  if (!Array.isArray(items ?? [])) throw malformedAnswer('the items of the list are not a list');
  const metadata = ownField(list, 'metadata');
  const envelope = {
    kind: ownText(list, 'kind'),
    resourceVersion: ownText(metadata, 'resourceVersion'),
    continueToken: ownText(metadata, 'continue'),
    hasItems: items !== undefined,
  };
  return { items: (items ?? []) as readonly unknown[], envelope };
}
