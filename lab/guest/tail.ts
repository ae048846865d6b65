/** What is added to a file that another process still writes. */
import { closeSync, openSync, readSync } from 'node:fs';
import { StringDecoder } from 'node:string_decoder';

const INTERVAL_MS = 100;
const CHUNK = 65_536;

export class Tail {
  readonly #file: string;
  readonly #onText: (text: string) => void;
  readonly #decoder = new StringDecoder('utf8');
  readonly #timer: NodeJS.Timeout;
  #position = 0;

  constructor(file: string, onText: (text: string) => void) {
    this.#file = file;
    this.#onText = onText;
    this.#timer = setInterval(() => this.#read(), INTERVAL_MS);
  }

  /** When nobody writes any more. */
  stop(): void {
    clearInterval(this.#timer);
    this.#read();
  }

  #read(): void {
    for (const chunk of this.#chunks()) {
      const text = this.#decoder.write(chunk);
      if (text !== '') this.#onText(text);
    }
  }

  *#chunks(): Generator<Buffer> {
    const descriptor = openIfThere(this.#file);
    if (descriptor === undefined) return;
    try {
      const buffer = Buffer.alloc(CHUNK);
      for (;;) {
        const length = readSync(descriptor, buffer, 0, CHUNK, this.#position);
        if (length === 0) return;
        this.#position += length;
        yield buffer.subarray(0, length);
      }
    } finally {
      closeSync(descriptor);
    }
  }
}

/** Cuts pieces of text into whole lines. */
export function lineByLine(onLine: (line: string) => void): (text: string) => void {
  let rest = '';
  return (text) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) onLine(line);
  };
}

function openIfThere(file: string): number | undefined {
  try {
    return openSync(file, 'r');
  } catch {
    return undefined;
  }
}
