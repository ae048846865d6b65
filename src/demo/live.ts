/** Stays: sends the requests again when Junction has written new rules or when asked to, until told to end. */
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import type { painter } from '../cli/table.ts';
import { countOf, type JunctionProcess, type LogLine } from './junctionProcess.ts';
import { printRows, printVerdict } from './report.ts';
import { meaningOf, type Row } from './traffic.ts';
import { probeKey } from './probes.ts';

export interface LiveOptions {
  readonly junction: JunctionProcess;
  readonly first: readonly Row[];
  readonly send: (before: readonly Row[]) => Promise<readonly Row[]>;
  readonly paint: ReturnType<typeof painter>;
  readonly signal: AbortSignal;
}

/** The other family's sync, and the demo's own look at the files, come this soon after. */
const SETTLE_MS = 300;
/** A second edit may be in the files but not in the kernel yet. */
const TRIES = 3;
const RETRY_MS = 500;

/** Resolves when it is time to end; fails when Junction does. */
export async function stay(options: LiveOptions): Promise<void> {
  const { junction, signal } = options;
  const session = new LiveSession(options);
  junction.onLine((line) => session.onLine(line));
  const ended = new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
    if (signal.aborted) resolve();
    readKeyboard({ r: () => session.sendAgain(), q: resolve }, signal);
  });
  const died = junction.exited.then(() => {
    if (!signal.aborted) throw junction.failure('has ended');
  });
  await Promise.race([ended, died]);
  session.stop();
}

function readKeyboard(keys: Readonly<Record<string, () => void>>, signal: AbortSignal): void {
  if (!process.stdin.isTTY) return;
  const lines = createInterface(process.stdin);
  lines.on('line', (line) => keys[line.trim().toLowerCase()]?.());
  signal.addEventListener('abort', () => lines.close(), { once: true });
}

class LiveSession {
  readonly #options: LiveOptions;
  #rows: readonly Row[];
  #syncs: LogLine[] = [];
  #timer: NodeJS.Timeout | undefined;
  #work: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(options: LiveOptions) {
    this.#options = options;
    this.#rows = options.first;
  }

  onLine(line: LogLine): void {
    if (this.#stopped) return;
    if (line.level !== 'info')
      this.#print(`${clock()} ${this.#options.paint('yellow', `Junction: ${line.msg}`)}`);
    if (line.msg !== 'Synced rules') return;
    this.#syncs.push(line);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#afterSyncs(), SETTLE_MS);
  }

  sendAgain(): void {
    this.#queue(async () => {
      this.#rows = await this.#options.send([]);
      this.#print(`${printRows(this.#rows, this.#options.paint)}\n${this.#verdict()}`);
    });
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  #afterSyncs(): void {
    const syncs = this.#syncs;
    this.#syncs = [];
    this.#queue(async () => {
      this.#print(`\n${clock()} ${this.#options.paint('cyan', describeSyncs(syncs))}`);
      const before = new Map(this.#rows.map((row) => [probeKey(row.probe), meaningOf(row)]));
      this.#rows = await this.#sendUntilRight();
      const changed = this.#rows.filter((row) => before.get(probeKey(row.probe)) !== meaningOf(row));
      if (changed.length === 0) this.#print('  None of the requests goes another way than before.');
      else this.#print(`${printRows(changed, this.#options.paint)}${this.#verdict()}`);
    });
  }

  async #sendUntilRight(): Promise<readonly Row[]> {
    for (let tries = 1; ; tries++) {
      const rows = await this.#options.send(this.#rows);
      if (tries === TRIES || rows.every(({ surprises }) => surprises.length === 0)) return rows;
      await sleep(RETRY_MS);
    }
  }

  #verdict(): string {
    return printVerdict(this.#rows, this.#options.paint);
  }

  #queue(work: () => Promise<void>): void {
    this.#work = this.#work.then(work).catch((error: unknown) => {
      this.#print(error instanceof Error ? error.message : String(error)); // nothing to say once it has ended
    });
  }

  #print(text: string): void {
    if (!this.#stopped) process.stdout.write(`${text}\n`);
  }
}

function describeSyncs(syncs: readonly LogLine[]): string {
  const parts = syncs.map(
    (line) =>
      `${String(line['ipFamily'])} in ${String(line['milliseconds'])} ms (${countOf(line['chains'], 'chain')}, ${countOf(line['rules'], 'rule')})`,
  );
  return `Junction wrote ${parts.join(' and ')}.`;
}

function clock(): string {
  return new Date().toTimeString().slice(0, 8);
}
