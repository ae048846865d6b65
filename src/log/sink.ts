/**
 * Writes log lines to a descriptor without ever waiting for its reader, and without failing.
 *
 * Standard error may be a pipe that nobody reads, a disk that is full, or a terminal that went away. A plain write
 * would stop the process in the first case and end it in the others. Here, what cannot be written waits in a small
 * buffer; what does not fit is dropped and counted, and how much that was is said as soon as anything can be written.
 */
import { constants, fstatSync, openSync, writeSync } from 'node:fs';
import { constants as os } from 'node:os';
import { countFault } from '../faults.ts';

/** Writes some of the bytes and returns how many. Throws an error with a code, such as EAGAIN. */
type WriteSome = (bytes: Uint8Array) => number;

export interface LostLines {
  readonly lines: number;
  /** `ENOSPC` */
  readonly reason: string;
}

/** Some thousand lines. */
const MOST_BYTES = 1 << 20;
const FIRST_RETRY_MS = 20;
const LAST_RETRY_MS = 1000;
const FLUSH_STEP_MS = 5;

export class LogSink {
  readonly #writeSome: WriteSome;
  readonly #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  #lost = 0;
  #reason = '';
  #retryMs = FIRST_RETRY_MS;
  #timer: NodeJS.Timeout | undefined;
  /** Called when lines were lost and writing works again. */
  onLost: ((lost: LostLines) => void) | undefined;

  constructor(writeSome: WriteSome) {
    this.#writeSome = writeSome;
  }

  write(line: string): void {
    const bytes = Buffer.from(line, 'utf8');
    if (this.#waiting.length > 0 && this.#waitingBytes + bytes.length > MOST_BYTES) {
      // A buffer writes many lines at once.
      this.#lost += Math.max(line.split('\n').length - 1, 1);
      countFault('log_line_lost', this.#reason);
      return;
    }
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    if (this.#timer === undefined) this.#drain();
  }

  /** Waits for the reader, but no longer than this. */
  flush(milliseconds: number): void {
    const until = performance.now() + milliseconds;
    this.#writeWaiting();
    while (this.#waiting.length > 0 && performance.now() < until) {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, FLUSH_STEP_MS);
      this.#writeWaiting();
    }
  }

  #drain(): void {
    this.#timer = undefined;
    if (this.#writeWaiting()) {
      this.#retryMs = FIRST_RETRY_MS;
      return;
    }
    this.#timer = setTimeout(() => this.#drain(), this.#retryMs).unref();
    this.#retryMs = Math.min(this.#retryMs * 2, LAST_RETRY_MS);
  }

  /** Returns whether nothing waits any more. */
  #writeWaiting(): boolean {
    try {
      for (let next = this.#waiting[0]; next; next = this.#waiting[0]) {
        const written = this.#writeSome(next);
        this.#waitingBytes -= written;
        if (written < next.length) this.#waiting[0] = next.subarray(written);
        else this.#waiting.shift();
      }
    } catch (error) {
      this.#reason = error instanceof Error && 'code' in error ? String(error.code) : String(error);
      return false;
    }
    const lines = this.#lost;
    this.#lost = 0;
    if (lines > 0) this.onLost?.({ lines, reason: this.#reason });
    return true;
  }
}

/** What Node has no call for. */
export interface DescriptorCalls {
  /** Writes to a socket what it takes at once. Returns how much that was, or the negative errno. */
  readonly sendNow: (descriptor: number, bytes: Uint8Array) => number;
  /** Whether a pipe takes at least PIPE_BUF bytes at once. */
  readonly isWritable: (descriptor: number) => boolean;
}

const PIPE_BUF = 4096;

/**
 * How to write to a descriptor without waiting. Making it non-blocking would do so for every process that shares it,
 * a shell among them; so a pipe or terminal is opened once more, and a socket is written to with a flag.
 */
export function nonBlockingWriter(descriptor: number, calls: DescriptorCalls): WriteSome {
  try {
    const stat = fstatSync(descriptor);
    if (stat.isSocket()) return socketWriter(descriptor, calls);
    // Writes to a file wait for the disk at most, and a file that is opened once more has another position.
    if (stat.isFile()) return (bytes) => writeSync(descriptor, bytes);
    const flags = constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY;
    const own = openSync(`/proc/self/fd/${descriptor}`, flags);
    return (bytes) => writeSync(own, bytes);
  } catch {
    // The pipe of another user, which may not be opened; or no descriptor is left.
    return (bytes) => {
      if (!calls.isWritable(descriptor)) throw withCode('EAGAIN');
      return writeSync(descriptor, bytes.subarray(0, PIPE_BUF));
    };
  }
}

function socketWriter(descriptor: number, { sendNow }: DescriptorCalls): WriteSome {
  return (bytes) => {
    const sent = sendNow(descriptor, bytes);
    if (sent >= 0) return sent;
    const [code] = Object.entries(os.errno).find(([, errno]) => errno === -sent) ?? ['unknown'];
    throw withCode(code);
  };
}

function withCode(code: string): Error {
  return Object.assign(new Error(code), { code });
}

/** kube-proxy takes up to 2 GiB, of which V8 cannot make one text. */
const MOST_BUFFER_BYTES = 2 ** 28;
/** Node takes a longer time for one millisecond. */
const LONGEST_MS = 2 ** 31 - 1;

/**
 * Lines that are written together: when they would no longer fit, when some time has passed, or at the end. As in
 * kube-proxy a line is never cut, and one that is larger than the buffer is written by itself.
 */
export class LogBuffer {
  readonly #write: (lines: string) => void;
  readonly #size: number;
  readonly #timer: NodeJS.Timeout;
  #lines = '';
  #bytes = 0;

  constructor(write: (lines: string) => void, size: number, flushMs: number) {
    this.#write = write;
    this.#size = Math.min(size, MOST_BUFFER_BYTES);
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
