/** One line per step: on a terminal it is drawn over until the step is done. */
import { canRedraw, painter } from '../../src/cli/table.ts';

/** Where nothing can be drawn over, a step that takes this long is announced. */
const STILL_AT_IT_MS = 10_000;
const TURN_MS = 1000;

export async function step<T>(
  label: string,
  work: (say: (detail: string) => void) => Promise<T>,
  describe: (result: T) => string = () => label,
): Promise<T> {
  const { stdout } = process;
  const paint = painter(stdout);
  const begun = performance.now();
  const line = canRedraw(stdout) ? new RedrawnLine(label, begun) : new PlainLine(label, begun);
  try {
    const result = await work((detail) => line.say(detail));
    line.clear();
    const seconds = ((performance.now() - begun) / 1000).toFixed(1);
    stdout.write(`${paint('green', '✓')} ${describe(result)} ${paint('dim', `(${seconds} s)`)}\n`);
    return result;
  } catch (error) {
    line.clear();
    stdout.write(`${paint('red', '✗')} ${label}\n`);
    throw error;
  }
}

class RedrawnLine {
  readonly #label: string;
  readonly #begun: number;
  readonly #timer: NodeJS.Timeout;
  #text: string;

  constructor(label: string, begun: number) {
    this.#label = label;
    this.#text = label;
    this.#begun = begun;
    this.#timer = setInterval(() => this.#draw(), TURN_MS);
    this.#draw();
  }

  say(detail: string): void {
    this.#text = `${this.#label}: ${detail}`;
    this.#draw();
  }

  clear(): void {
    clearInterval(this.#timer);
    process.stdout.write('\r\u001b[K');
  }

  /** Cut to the terminal's width: a line that wraps cannot be drawn over. */
  #draw(): void {
    const seconds = Math.floor((performance.now() - this.#begun) / 1000);
    const room = (process.stdout.columns ?? 80) - 3;
    const text = `${this.#text}${seconds > 1 ? ` ${seconds} s` : ''}`.slice(0, room);
    process.stdout.write(`\r\u001b[K${painter(process.stdout)('cyan', '…')} ${text}`);
  }
}

class PlainLine {
  readonly #timer: NodeJS.Timeout;

  constructor(label: string, begun: number) {
    this.#timer = setInterval(() => {
      process.stdout.write(`  ${label} … ${Math.round((performance.now() - begun) / 1000)} s\n`);
    }, STILL_AT_IT_MS);
  }

  say(): void {}

  clear(): void {
    clearInterval(this.#timer);
  }
}
