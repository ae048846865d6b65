/** A watch's body cut into its frames, each with its length before it, and each frame as a watch event. */
import { malformedAnswer } from '../failure.ts';
import { ByteWindow } from './byteWindow.ts';
import { BYTES, WireReader } from './wire.ts';

const LENGTH_BYTES = 4;

/** Of `WatchEvent` and of the `RawExtension` in it: tags of the fields. */
const TYPE = (1 << 3) | BYTES;
const OBJECT = (2 << 3) | BYTES;
const RAW = (1 << 3) | BYTES;

export class FrameSplitter {
  readonly #window: ByteWindow;
  #length: number | undefined;

  constructor(mostBytes?: number) {
    this.#window = new ByteWindow(mostBytes);
  }

  /** The frames that this chunk completes. They are parts of it, or of a copy: good until the next chunk. */
  *push(chunk: Uint8Array): Generator<Uint8Array> {
    const window = this.#window;
    let isThere = window.push(chunk);
    while (isThere) {
      this.#length ??= window.take(LENGTH_BYTES, 'a length')?.readUInt32BE();
      const frame = this.#length === undefined ? undefined : window.take(this.#length, 'a watch frame');
      if (frame === undefined) {
        isThere = window.wait(this.#length ?? LENGTH_BYTES);
      } else {
        this.#length = undefined;
        yield frame;
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
  /** With its envelope. */
  readonly object: Uint8Array;
}

const reader = new WireReader();

export function readWatchEvent(frame: Uint8Array): WatchEvent {
  reader.load(frame);
  try {
    let type = '';
    let object: Uint8Array | undefined;
    while (reader.at < reader.end) {
      const tag = reader.tag();
      if (tag === TYPE) type = reader.sharedText();
      else if (tag === OBJECT) object = readExtension();
      else reader.skip(tag & 7);
    }
    if (object === undefined) throw malformedAnswer('it has no object');
    return { type, object };
  } finally {
    reader.unload();
  }
}

function readExtension(): Uint8Array | undefined {
  const outer = reader.enter();
  let raw: Uint8Array | undefined;
  while (reader.at < reader.end) {
    const tag = reader.tag();
    if (tag !== RAW) {
      reader.skip(tag & 7);
      continue;
    }
    const end = reader.valueEnd();
    raw = reader.bytes.subarray(reader.at, end);
    reader.at = end;
  }
  reader.end = outer;
  return raw;
}
