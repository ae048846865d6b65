/** A watch's body cut into its frames, each with its length before it, and each frame as a watch event. */
import { malformedAnswer } from '../failure.ts';
import { ByteWindow, type TakePart } from './byteWindow.ts';
import { BYTES, WireReader } from './wire.ts';

const LENGTH_BYTES = 4;

/** Of `WatchEvent` and of the `RawExtension` in it: tags of the fields. */
const TYPE = (1 << 3) | BYTES;
const OBJECT = (2 << 3) | BYTES;
const RAW = (1 << 3) | BYTES;

export class FrameSplitter {
  readonly #window = new ByteWindow();
  #length: number | undefined;

  /** `take` is called with each frame that this chunk completes: a part of it, or of a copy, good until the next chunk. */
  push(chunk: Uint8Array, take: TakePart): void {
    const window = this.#window;
    let isThere = window.push(chunk);
    while (isThere) {
      if (this.#length === undefined && window.has(LENGTH_BYTES, 'a length')) {
        this.#length = window.bytes.readUInt32BE(window.at);
        window.at += LENGTH_BYTES;
      }
      if (this.#length === undefined || !window.has(this.#length, 'a watch frame')) {
        isThere = window.wait(this.#length ?? LENGTH_BYTES);
      } else {
        const from = window.at;
        window.at += this.#length;
        this.#length = undefined;
        take(window.bytes, from, window.at);
      }
    }
  }

  /** Call at the end of the body. */
  end(): void {
    if (!this.#window.isEmpty || this.#length !== undefined)
      throw malformedAnswer('the watch ended in the middle of a frame');
  }
}

interface WatchEvent {
  readonly type: string;
  /** Where its object is, with its envelope. */
  readonly from: number;
  readonly end: number;
}

const reader = new WireReader();

/** Of the frame that is this part of the bytes. */
export function readWatchEvent(bytes: Uint8Array, frameFrom: number, frameEnd: number): WatchEvent {
  reader.load(bytes, frameFrom, frameEnd);
  try {
    let type = '';
    let from: number | undefined;
    let end = 0;
    while (reader.at < reader.end) {
      const tag = reader.tag();
      if (tag === TYPE) {
        type = reader.sharedText();
      } else if (tag === OBJECT) {
        from = undefined;
        const outer = reader.enter();
        while (reader.at < reader.end) {
          const inner = reader.tag();
          if (inner === RAW) {
            end = reader.valueEnd();
            from = reader.at;
            reader.at = end;
          } else {
            reader.skip(inner & 7);
          }
        }
        reader.end = outer;
      } else {
        reader.skip(tag & 7);
      }
    }
    if (from === undefined) throw malformedAnswer('it has no object');
    return { type, from, end };
  } finally {
    reader.unload();
  }
}
