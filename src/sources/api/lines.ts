/** A watch's body cut into its frames: one JSON text per line. */
import { malformed } from './failure.ts';

const NEWLINE = 0x0a;
const MEBIBYTE = 1024 * 1024;
/** etcd holds no object above 1.5 MiB by default; what is ten times that is not a frame. */
const MOST_FRAME_BYTES = 16 * MEBIBYTE;

export class LineSplitter {
  readonly #most: number;
  #parts: Uint8Array[] = [];
  #length = 0;

  constructor(mostBytes = MOST_FRAME_BYTES) {
    this.#most = mostBytes;
  }

  /** The lines that this chunk completes, without those that are blank. */
  *push(chunk: Uint8Array): Generator<string> {
    let from = 0;
    for (;;) {
      const end = chunk.indexOf(NEWLINE, from);
      this.#keep(chunk.subarray(from, end < 0 ? chunk.length : end));
      if (end < 0) return;
      const line = this.#take();
      if (line.trim() !== '') yield line;
      from = end + 1;
    }
  }

  /** Call at the end of the body: a frame without its newline was cut off. */
  end(): void {
    if (this.#take().trim() !== '') throw malformed('the watch ended in the middle of a frame');
  }

  #keep(part: Uint8Array): void {
    if (part.length === 0) return;
    this.#length += part.length;
    if (this.#length > this.#most) {
      throw malformed(`a watch frame is longer than ${this.#most} bytes`);
    }
    this.#parts.push(part);
  }

  #take(): string {
    const bytes = Buffer.concat(this.#parts, this.#length);
    this.#parts = [];
    this.#length = 0;
    return bytes.toString('utf8');
  }
}
