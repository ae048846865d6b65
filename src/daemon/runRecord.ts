/**
 * What the runs before this one ended with. A small file says that a run is under way, and why one crashed; the next
 * run reads it. A run that is killed, by the kernel for want of memory or by SIGKILL, leaves the first mark behind.
 * Without a place to write, nothing is recorded, and nothing else changes.
 */
import { closeSync, mkdirSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { attempt, errorCode, messageOf } from '../errors.ts';
import { libc } from '../system/libc.ts';

type CrashCause = 'uncaught_error' | 'killed';

interface Crash {
  readonly cause: CrashCause;
  /** When it was noticed; of a run that was killed, when it began. */
  readonly at: string;
  readonly what: string;
}

export interface PreviousRuns {
  /** Since the file was made: /run is empty after a boot. */
  readonly crashes: Readonly<Record<CrashCause, number>>;
  /** That of the run before this one, if it crashed. */
  readonly last?: Crash;
}

interface State extends PreviousRuns {
  /** When the run began that has not ended. */
  readonly runningSince?: string;
}

const NONE: PreviousRuns = { crashes: { uncaught_error: 0, killed: 0 } };
const MOST_TEXT = 4000;
/** Where Kubernetes looks for why a container ended; shown by `kubectl describe pod`. */
const TERMINATION_LOG = '/dev/termination-log';

export class RunRecord {
  readonly previous: PreviousRuns = NONE;
  /** Why nothing is recorded. */
  readonly problem: string | undefined;
  readonly #file: string | undefined;
  readonly #terminationLog: string;

  /** An empty directory: nothing is recorded. */
  constructor(directory: string, terminationLog = TERMINATION_LOG) {
    this.#terminationLog = terminationLog;
    if (directory === '') return;
    const file = join(directory, 'runs.json');
    try {
      makeDirectory(directory);
      if (!lock(join(directory, 'running.lock'))) throw new Error(`another run has locked ${directory}`);
      const previous = noteKilled(read(file));
      write(file, { crashes: previous.crashes, runningSince: new Date().toISOString() });
      this.previous = previous;
      this.#file = file;
    } catch (error) {
      this.problem = messageOf(error);
    }
  }

  crashed(text: string): void {
    const what = text.slice(0, MOST_TEXT);
    const last: Crash = { cause: 'uncaught_error', at: new Date().toISOString(), what };
    const { crashes } = this.previous;
    this.#tryToWrite({ crashes: { ...crashes, uncaught_error: crashes.uncaught_error + 1 }, last });
    // There is none but in a container of Kubernetes.
    attempt(() => writeFileSync(this.#terminationLog, `${what}\n`, { flag: 'r+' }));
  }

  ended(): void {
    this.#tryToWrite({ crashes: this.previous.crashes });
  }

  /** The disk may be full, or read-only by now. */
  #tryToWrite(state: State): void {
    const file = this.#file;
    if (file !== undefined) attempt(() => write(file, state));
  }
}

/** By renaming: whoever reads it finds the old or the new one, whole. */
function write(file: string, state: State): void {
  writeFileSync(`${file}.new`, `${JSON.stringify(state)}\n`, { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

/** The run before this one is over, because nobody holds the lock, and it did not say so. */
function noteKilled({ runningSince, ...previous }: State): PreviousRuns {
  if (runningSince === undefined) return previous;
  const { crashes } = previous;
  const what = 'it ended without a word: killed (SIGKILL, or out of memory), or a fault in native code';
  return {
    crashes: { ...crashes, killed: crashes.killed + 1 },
    last: { cause: 'killed', at: runningSince, what },
  };
}

/** Whatever the file holds: an unreadable one is as none. */
function read(file: string): State {
  try {
    const { crashes, last, runningSince } = JSON.parse(readFileSync(file, 'utf8')) as Partial<State>;
    const count = (cause: CrashCause): number => {
      const number = crashes?.[cause] ?? 0;
      return Number.isSafeInteger(number) ? Math.max(0, number) : 0;
    };
    return {
      crashes: { uncaught_error: count('uncaught_error'), killed: count('killed') },
      ...(typeof last?.what === 'string' &&
        typeof last.at === 'string' && { last: { cause: 'uncaught_error', at: last.at, what: last.what } }),
      ...(typeof runningSince === 'string' && { runningSince }),
    };
  } catch {
    return NONE;
  }
}

/** Not its parents: Node tries for ever where the kernel says ENOENT to every attempt, as below /proc. */
function makeDirectory(path: string): void {
  try {
    mkdirSync(path, { mode: 0o755 });
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error;
  }
}

/** Held until the process ends, however it ends. False: another run holds it. */
function lock(path: string): boolean {
  const descriptor = openSync(path, 'a', 0o600);
  if (libc().tryFlock(descriptor) === 0) return true;
  closeSync(descriptor);
  return false;
}
