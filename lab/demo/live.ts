/** Stays: sends the requests again when Junction has written new rules or when asked to, until it is stopped. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { painter } from '../../src/cli/table.ts';
import type { Lab } from '../lab.ts';
import { HOST_NAMES, type HostName } from '../topology.ts';
import type { JunctionProcess, LogLine } from './junctionProcess.ts';
import type { DemoMode } from './options.ts';
import { describeWarning, describeWrite } from './writes.ts';
import { readKeyboard } from './keyboard.ts';
import { printRows, printVerdict } from './report.ts';
import { meaningOf, type Row } from './traffic.ts';
import { probeKey } from './probes.ts';

export interface LiveOptions {
  readonly junction: JunctionProcess;
  readonly lab: Lab;
  readonly mode: DemoMode;
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
const COMMAND_LIMIT_MS = 30_000;

/** Resolves when it is time to end; fails when Junction does. */
export async function stay(options: LiveOptions): Promise<void> {
  const { junction, signal } = options;
  const session = new LiveSession(options);
  junction.onLine((line) => session.onLine(line));
  let closeKeyboard = (): void => {};
  const ended = new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
    if (signal.aborted) resolve();
    closeKeyboard = readKeyboard((line) => obey(line.trim(), session, resolve));
  });
  const died = junction.exited.then(() => {
    if (!signal.aborted) throw junction.failure('has ended');
  });
  await Promise.race([ended, died]);
  closeKeyboard();
  session.stop();
}

function obey(line: string, session: LiveSession, end: () => void): void {
  const [word = '', ...rest] = line.split(/\s+/);
  const host = HOST_NAMES.find((name) => name === word);
  if (word === '') return;
  if (word.toLowerCase() === 'q') end();
  else if (word.toLowerCase() === 'r') session.sendAgain();
  else if (host && rest.length > 0) session.runOn(host, line.slice(word.length).trim());
  else session.explain(line);
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
      this.#print(`${clock()} ${this.#options.paint('yellow', describeWarning(line))}`);
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

  runOn(host: HostName, command: string): void {
    this.#queue(async () => {
      const { exitCode, stdout, stderr, timedOut } = await this.#options.lab
        .host(host)
        .exec(['sh', '-c', command], { timeoutMs: COMMAND_LIMIT_MS });
      const output = `${stdout}${stderr}`.trimEnd();
      if (output !== '') this.#print(output);
      if (timedOut) this.#print(`It took more than ${COMMAND_LIMIT_MS / 1000} s, and was ended.`);
      else if (exitCode !== 0) this.#print(`It ended with ${exitCode ?? 'a signal'}.`);
    });
  }

  explain(line: string): void {
    const hosts = HOST_NAMES.join(', ');
    const text = `"${line}": expected r, q, or a host and a command. The hosts are ${hosts}.`;
    this.#queue(async () => this.#print(text)); // after the answer to what was typed before
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  #afterSyncs(): void {
    const syncs = this.#syncs;
    this.#syncs = [];
    this.#queue(async () => {
      this.#print('');
      for (const sync of syncs)
        this.#print(`${clock()} ${this.#options.paint('cyan', describeWrite(sync, this.#options.mode))}`);
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

function clock(): string {
  return new Date().toTimeString().slice(0, 8);
}
