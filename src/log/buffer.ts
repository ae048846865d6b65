/**
 * Lines that are written together: when they would no longer fit, when some time has passed, or at the end. As in
 * kube-proxy a line is never cut, and one that is larger than the buffer is written by itself.
 */

/** kube-proxy takes up to 2 GiB, of which V8 cannot make one text. */
const MOST_BYTES = 2 ** 28;
/** Node takes a longer time for one millisecond. */
const LONGEST_MS = 2 ** 31 - 1;

export class LogBuffer {
  readonly #write: (lines: string) => void;
  readonly #size: number;
  readonly #timer: NodeJS.Timeout;
  #lines = '';
  #bytes = 0;

  constructor(write: (lines: string) => void, size: number, flushMs: number) {
    this.#write = write;
    this.#size = Math.min(size, MOST_BYTES);
    this.#timer = setInterval(() => this.flush(), Math.min(Math.max(flushMs, 1), LONGEST_MS)).unref();
  }

  write(line: string): void {
    const bytes = Buffer.byteLength(line);
    if (this.#bytes + bytes > this.#size) this.flush();
    if (bytes > this.#size) {
      this.#write(line);
      return;
    }
    this.#lines += line;
    this.#bytes += bytes;
  }

  flush(): void {
    if (this.#bytes === 0) return;
    const lines = this.#lines;
    this.#lines = '';
    this.#bytes = 0;
    this.#write(lines);
  }

  close(): void {
    clearInterval(this.#timer);
    this.flush();
  }
}
