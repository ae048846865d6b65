/** Where commands print. */
import type { LostLines } from '../log/sink.ts';
import type { Family } from '../model/ip.ts';
import { printable } from '../text/printable.ts';

export interface Output {
  out(text: string): void;
  err(text: string): void;
  /** What is printable already, and has colours. */
  painted(text: string): void;
  /** Writes what waits to be written, for so long at most. */
  flush?(milliseconds: number): void;
  /** Aborted when nobody reads standard output any more. */
  readonly closed?: AbortSignal;
  /** Resolves when all is written, however long the reader takes, with what could not be. */
  finished?(): Promise<readonly WriteFailure[]>;
  /** Returns what writes log lines to standard output: at once, or through a buffer. Nothing waits for who reads them. */
  logToStdout?(buffer: BufferOptions | undefined): (line: string) => void;
  /** Called when log lines were lost and writing works again; after `logToStdout`. */
  onLost?(report: (lost: LostLines) => void): void;
}

/** How a command that prints for people and for programs is to do it. */
export interface PrintOptions {
  readonly families: readonly Family[];
  readonly output: string;
  /** Of the terminal, if it is one. */
  readonly columns?: number | undefined;
}

interface BufferOptions {
  readonly bytes: number;
  readonly flushMs: number;
}

interface WriteFailure {
  readonly stream: 'standard output' | 'standard error';
  readonly error: NodeJS.ErrnoException;
}

/** Of a command that ends when it has printed: everything it says is written before. */
export function commandOutput(): Output {
  const stdout = new CountedStream('standard output', process.stdout);
  const stderr = new CountedStream('standard error', process.stderr);
  return {
    out: (text) => stdout.write(printable(text)),
    err: (text) => stderr.write(printable(text)),
    painted: (text) => stdout.write(text),
    closed: stdout.closed,
    finished: async () => [...(await stdout.finished()), ...(await stderr.finished())],
  };
}

/** A pipe takes 64 KiB at a time; what was written later is lost when the process ends before its reader has come so far. */
export class CountedStream {
  readonly #stream: WriteFailure['stream'];
  readonly #writable: NodeJS.WriteStream;
  readonly #pending = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  #failure: NodeJS.ErrnoException | undefined;

  constructor(stream: WriteFailure['stream'], writable: NodeJS.WriteStream) {
    this.#stream = stream;
    this.#writable = writable;
    // Without anybody who listens, an error would end the process with a stack.
    writable.on('error', (error: NodeJS.ErrnoException) => this.#fail(error));
  }

  get closed(): AbortSignal {
    return this.#closing.signal;
  }

  write(text: string): void {
    const written = new Promise<void>((resolve) => {
      this.#writable.write(text, (error) => {
        if (error) this.#fail(error);
        resolve();
      });
    });
    this.#pending.add(written);
    void written.then(() => this.#pending.delete(written));
  }

  async finished(): Promise<readonly WriteFailure[]> {
    while (this.#pending.size > 0) await Promise.all(this.#pending);
    return this.#failure ? [{ stream: this.#stream, error: this.#failure }] : [];
  }

  /** The first one is the reason; later ones say that the stream is closed. */
  #fail(error: NodeJS.ErrnoException): void {
    this.#failure ??= error;
    this.#closing.abort();
  }
}
