/**
 * Running programs: no shell, whole output, a typed answer. Each leads a process group of its own, so that one that hangs
 * is killed together with whatever it started: iptables runs modprobe, and in many images it is a shell script.
 */
import { type ChildProcess, type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { attempt, errorCode, JunctionError } from '../errors.ts';
import { countFault } from '../faults.ts';
import { PARENT_VARIABLE, parentMark } from './procfs.ts';

export type Argv = readonly [program: string, ...args: string[]];

export interface RunOptions {
  readonly stdin?: string | undefined;
  /** After this the program and its process group are killed, and `PROGRAM_TIMED_OUT` is thrown. */
  readonly timeoutMs?: number | undefined;
  /** Called with the output while it arrives; the result has none of it then. */
  readonly onStdout?: ((text: string) => Promise<void>) | undefined;
  /** Called when it starts, and awaited before it is given its input; and when it has ended. */
  readonly observer?: ProcessObserver | undefined;
  /** Added to Junction's own environment. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Kills the program and its process group; `run` rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

export interface ProcessObserver {
  started(processId: number): Promise<void>;
  ended(processId: number): void;
}

export interface RunResult {
  /** `null` when a signal ended the program. */
  readonly code: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program to its end. A failing exit status is a result; a program that cannot run is a `JunctionError`. */
export type CommandRunner = (argv: Argv, options?: RunOptions) => Promise<RunResult>;

export const run: CommandRunner = async (argv, options = {}) => {
  const child = await start(argv, options);
  const { onStdout, timeoutMs, signal, observer } = options;
  const stdout = onStdout ? () => '' : collect(child.stdout);
  const stderr = collect(child.stderr);
  let timer: NodeJS.Timeout | undefined;
  let abort = (): void => undefined;
  const ended = new Promise<Pick<RunResult, 'code' | 'signal'>>((resolve, reject) => {
    let late: JunctionError | undefined;
    child.once('close', (code, endedBy) => (late ? reject(late) : resolve({ code, signal: endedBy })));
    abort = () => reject(signal?.reason);
    if (signal?.aborted) abort();
    signal?.addEventListener('abort', abort);
    if (timeoutMs === undefined) return;
    timer = setTimeout(() => {
      const error = timedOut(argv, timeoutMs);
      late = error;
      // Also without a close: a program that left the group and keeps the pipes open must not keep us waiting.
      void endGroup(child).then(() => reject(error));
    }, timeoutMs);
  });
  try {
    const passed = onStdout && passOn(child.stdout, onStdout);
    const announceAndFeed = async (): Promise<void> => {
      if (child.pid !== undefined) await observer?.started(child.pid);
      await feed(child, options.stdin ?? '');
    };
    const [outcome] = await Promise.all([ended, announceAndFeed(), passed]);
    return { ...outcome, stdout: stdout(), stderr: stderr() };
  } catch (error) {
    // Nobody waits for it any more: it ends, and its pipes keep neither memory nor descriptors.
    void endGroup(child);
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy();
    throw error;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', abort);
    if (child.pid !== undefined) observer?.ended(child.pid);
  }
};

function timedOut(argv: Argv, milliseconds: number): JunctionError {
  countFault('program_timed_out');
  return new JunctionError(
    'PROGRAM_TIMED_OUT',
    `${argv.join(' ')} did not end within ${milliseconds / 1000} s, and was killed`,
  );
}

/** A runner that kills what takes longer, where nobody says how long it may take. */
export function timeLimited(runner: CommandRunner, timeoutMs: number): CommandRunner {
  return (argv, options) => runner(argv, { timeoutMs, ...options });
}

/** Resolves when the program runs. */
async function start(argv: Argv, options: RunOptions): Promise<ChildProcessWithoutNullStreams> {
  const [program, ...args] = argv;
  let child: ChildProcess;
  try {
    // Detached: it leads a process group, which can be killed as a whole.
    child = spawn(program, args, { stdio: 'pipe', env: environment(options.env), detached: true });
  } catch (error) {
    throw notStarted(argv, error); // a NUL byte in an argument, too many of them, or ENOMEM
  }
  // Without descriptors or processes left (EMFILE, ENFILE, EAGAIN), Node says so later, in an event; a child without
  // pipes is all that there is of it by then.
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', (error) => reject(notStarted(argv, error)));
  });
  child.on('error', () => undefined); // a signal that could not be sent: it has ended
  trackChild(child, argv.join(' '));
  if (!hasPipes(child)) throw notStarted(argv, new Error('it has no pipes'));
  return child;
}

function hasPipes(child: ChildProcess): child is ChildProcessWithoutNullStreams {
  return child.stdin !== null && child.stdout !== null && child.stderr !== null;
}

let mark: string | undefined;

function environment(extra: RunOptions['env']): NodeJS.ProcessEnv {
  mark ??= parentMark();
  const path = (process.env['PATH'] ?? '/usr/bin:/bin').split(':');
  // Debian leaves sbin out of an ordinary user's PATH, and iptables lives there.
  const sbin = ['/usr/local/sbin', '/usr/sbin', '/sbin'].filter((directory) => !path.includes(directory));
  // The C locale, because error texts are parsed.
  return {
    ...process.env,
    LC_ALL: 'C',
    PATH: [...path, ...sbin].join(':'),
    [PARENT_VARIABLE]: mark,
    ...extra,
  };
}

/** Text while it arrives: a large cluster's rules are 50 MB, too much to decode in one go. */
function collect(stream: Readable): () => string {
  const chunks: string[] = [];
  stream.setEncoding('utf8').on('data', (chunk: string) => chunks.push(chunk));
  return () => chunks.join('');
}

async function passOn(stream: Readable, take: (text: string) => Promise<void>): Promise<void> {
  const texts: AsyncIterable<string> = stream.setEncoding('utf8');
  for await (const text of texts) await take(text);
}

const CHUNK_BYTES = 1 << 16;

async function feed(child: ChildProcess & { readonly stdin: Writable }, text: string): Promise<void> {
  const { stdin } = child;
  // A program may end before it has read everything; its exit status says more than our EPIPE.
  stdin.on('error', () => undefined);
  const bytes = Buffer.from(text, 'utf8');
  for (let from = 0; from < bytes.length && stdin.writable; from += CHUNK_BYTES) {
    if (!stdin.write(bytes.subarray(from, from + CHUNK_BYTES))) await drained(stdin);
  }
  stdin.end();
}

async function drained(stream: Writable): Promise<void> {
  const settled = new AbortController();
  const { signal } = settled;
  try {
    await Promise.race([once(stream, 'drain', { signal }), once(stream, 'close', { signal })]);
  } catch {
    // `once` rejects on an error event; whoever writes next sees that the stream is not writable.
  } finally {
    settled.abort();
  }
}

export function notStarted(argv: Argv, cause: unknown): JunctionError {
  const [program] = argv;
  const code = errorCode(cause);
  if (code !== 'ENOENT') {
    countFault('program_not_started');
    const message = `cannot start ${program}: ${code ?? String(cause)}`;
    return new JunctionError('PROGRAM_NOT_STARTED', message, { cause });
  }
  const name = packageOf(program);
  return new JunctionError(
    'PROGRAM_MISSING',
    `the program ${program} is not installed${name ? ` (Debian package ${name})` : ''}`,
    { cause, hint: name ? `apt-get install ${name}` : undefined },
  );
}

const PACKAGES: readonly (readonly [RegExp, string])[] = [
  [/^(ip6?tables|xtables)/, 'iptables'],
  [/^(nsenter|unshare|flock)$/, 'util-linux'],
  [/^(ip|ss|bridge)$/, 'iproute2'],
  [/^nft$/, 'nftables'],
  [/^(ipset|ipvsadm|conntrack|nfacct)$/, '$1'],
  [/^(modprobe|lsmod)$/, 'kmod'],
];

export function packageOf(program: string): string | undefined {
  const name = program.slice(program.lastIndexOf('/') + 1);
  const entry = PACKAGES.find(([pattern]) => pattern.test(name));
  return entry && (entry[1] === '$1' ? name : entry[1]);
}

/** Between SIGTERM and SIGKILL. iptables ends within milliseconds when it can end at all. */
const KILL_GRACE_MS = 1000;
/** How long a killed program may take to disappear: one that waits inside the kernel for a disk or a lock stays. */
const GONE_GRACE_MS = 1000;

interface RunningChild {
  readonly pid: number;
  /** `iptables-restore -w 5 --noflush --counters` */
  readonly command: string;
  readonly startedAt: number;
}

const running = new Map<number, RunningChild>();
let endsWithProcess = false;

export function trackChild(child: ChildProcess, command: string): void {
  const { pid } = child;
  if (pid === undefined) return;
  if (!endsWithProcess) {
    endsWithProcess = true;
    process.on('exit', () => killChildren('SIGKILL'));
  }
  running.set(pid, { pid, command, startedAt: performance.now() });
  child.once('exit', () => running.delete(pid));
}

/** `iptables-restore -w 5 --noflush (pid 4711, for 31 s)` */
export function printChildren(): readonly string[] {
  return [...running.values()].map(({ pid, command, startedAt }) => {
    const seconds = Math.round((performance.now() - startedAt) / 1000);
    return `${command} (pid ${pid}, for ${seconds} s)`;
  });
}

export function killChildren(signal: 'SIGTERM' | 'SIGKILL'): void {
  for (const pid of running.keys()) signalGroup(pid, signal);
}

/** SIGTERM, and SIGKILL for what is still there after the grace. Resolves when the child has ended, or will not. */
export async function endGroup(child: ChildProcess): Promise<void> {
  const { pid } = child;
  if (pid === undefined || hasEnded(child)) return;
  signalGroup(pid, 'SIGTERM');
  const ended = await endsWithin(child, KILL_GRACE_MS);
  // Also when the leader has ended: others of its group may have ignored the first signal.
  signalGroup(pid, 'SIGKILL');
  if (!ended) await endsWithin(child, GONE_GRACE_MS);
}

function signalGroup(pid: number, signal: 'SIGTERM' | 'SIGKILL'): void {
  attempt(() => process.kill(-pid, signal)); // ESRCH: all of them have ended
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}

function endsWithin(child: ChildProcess, milliseconds: number): Promise<boolean> {
  return new Promise((resolve) => {
    if (hasEnded(child)) {
      resolve(true);
      return;
    }
    const settle = (ended: boolean) => (): void => {
      clearTimeout(timer);
      child.off('exit', onExit);
      resolve(ended);
    };
    const onExit = settle(true);
    const timer = setTimeout(settle(false), milliseconds);
    child.once('exit', onExit);
  });
}

/** What a machine is short of now it may have again later. */
const SHORTAGES: ReadonlySet<unknown> = new Set(['EMFILE', 'ENFILE', 'EAGAIN', 'ENOMEM']);

/** The kernel's words for the same, as iptables prints them. */
const PASSING =
  /Resource temporarily unavailable|Cannot allocate memory|Too many open files|Interrupted system call/;

/**
 * The program gave no answer, for a reason that passes: its lock was held, it was killed, the machine was short of
 * something. So its failure says nothing about what it was asked.
 */
export function isUnanswered(error: JunctionError): boolean {
  const { code, cause } = error;
  if (code === 'PROGRAM_NOT_STARTED') return SHORTAGES.has(errorCode(cause));
  if (code === 'IPTABLES_FAILED') return PASSING.test(error.detail ?? '');
  return code === 'XTABLES_LOCK_HELD' || code === 'PROGRAM_TIMED_OUT' || code === 'PROGRAM_KILLED';
}
