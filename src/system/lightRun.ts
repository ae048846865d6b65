/**
 * Starts programs that only read, at little cost to this process. Node starts a program by `fork`, which copies the page
 * tables: with 400 MB in memory the thread stands still for 18 ms (measured, Node 20, Linux 6.18). `posix_spawn` shares
 * them until the program is loaded, and takes less than 1 ms at any size.
 *
 * Such a program gets no input, and is not told to observers: whatever changes something is started by `run`.
 */
import { accessSync, constants } from 'node:fs';
import { constants as system } from 'node:os';
import { join } from 'node:path';
import { Socket } from 'node:net';
import { isJunctionError } from '../errors.ts';
import { wait } from '../time/wait.ts';
import { systemClock } from '../time/systemClock.ts';
import { errnoName, libc } from './libc.ts';
import {
  type Argv,
  collect,
  type CommandRunner,
  environment,
  notStarted,
  passOn,
  run,
  type RunOptions,
  type RunResult,
  signalGroup,
  timedOut,
} from './processes.ts';

const O_CLOEXEC = 0o2000000;
/** spawn.h; the structures have 80 and 336 bytes in glibc. */
const POSIX_SPAWN_SETPGROUP = 2;
const POSIX_SPAWN_SETSIGDEF = 4;
const STRUCTURE_BYTES = 1024;
const SIGSET_BYTES = 128;
const WNOHANG = 1;
/** A program that has closed its output ends within a millisecond. */
const END_POLL_MS = 2;

export const lightRun: CommandRunner = (argv, options = {}) => {
  const isPlain = options.stdin === undefined && options.observer === undefined;
  if (!isPlain || !hasLibc()) return run(argv, options);
  return runSpawned(argv, options);
};

function hasLibc(): boolean {
  try {
    libc();
    return true;
  } catch (error) {
    if (isJunctionError(error, 'NATIVE_UNAVAILABLE')) return false;
    throw error;
  }
}

let lastStart: Promise<void> = Promise.resolve();

/** One start in a turn of the event loop: what else there is to do has its turns in between. */
function nextStart(): Promise<void> {
  lastStart = lastStart.then(() => new Promise<void>((resolve) => setImmediate(resolve)));
  return lastStart;
}

async function runSpawned(argv: Argv, options: RunOptions): Promise<RunResult> {
  const { onStdout, timeoutMs, env, signal } = options;
  await nextStart();
  signal?.throwIfAborted();
  const { pid, stdout, stderr } = spawned(argv, environment(env));
  let isLate = false;
  const kill = (): void => {
    signalGroup(pid, 'SIGKILL');
    for (const stream of [stdout, stderr]) stream.destroy();
  };
  const late = (): void => {
    isLate = true;
    kill();
  };
  const timer = timeoutMs === undefined ? undefined : setTimeout(late, timeoutMs);
  signal?.addEventListener('abort', kill);
  const closed = [stdout, stderr].map(
    (stream) => new Promise<void>((resolve) => stream.once('close', () => resolve())),
  );
  for (const stream of [stdout, stderr]) stream.on('error', () => undefined);
  const collected = onStdout ? () => '' : collect(stdout);
  const errors = collect(stderr);
  try {
    await Promise.all([onStdout && passOn(stdout, onStdout), ...closed]);
    const status = await endOf(pid);
    signal?.throwIfAborted();
    if (isLate && timeoutMs !== undefined) throw timedOut(argv, timeoutMs);
    return { ...status, stdout: collected(), stderr: errors() };
  } catch (error) {
    kill();
    void endOf(pid);
    throw isLate && timeoutMs !== undefined ? timedOut(argv, timeoutMs) : error;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', kill);
  }
}

interface Spawned {
  readonly pid: number;
  readonly stdout: Socket;
  readonly stderr: Socket;
}

function spawned(argv: Argv, variables: NodeJS.ProcessEnv): Spawned {
  const [program] = argv;
  const path = pathOf(program, variables['PATH'] ?? '');
  if (path === undefined) throw notStarted(argv, Object.assign(new Error(program), { code: 'ENOENT' }));
  const { close, spawn } = libc();
  const out = pipe(argv);
  const err = pipe(argv);
  const actions = new Uint8Array(STRUCTURE_BYTES);
  const attributes = new Uint8Array(STRUCTURE_BYTES);
  const pid = new Int32Array(1);
  spawn.initActions(actions);
  spawn.addOpen(actions, 0, '/dev/null', 0, 0);
  spawn.addDup2(actions, out.write, 1);
  spawn.addDup2(actions, err.write, 2);
  spawn.initAttributes(attributes);
  spawn.setDefaultSignals(attributes, signalSet(system.signals.SIGPIPE)); // Node ignores it
  spawn.setFlags(attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
  const names = Object.entries(variables).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${value}`],
  );
  const errno = spawn.start(
    new Uint8Array(pid.buffer),
    path,
    actions,
    attributes,
    [...argv, null],
    [...names, null],
  );
  spawn.destroyActions(actions);
  for (const fd of [out.write, err.write]) close(fd);
  if (errno !== 0) {
    for (const fd of [out.read, err.read]) close(fd);
    throw notStarted(argv, Object.assign(new Error(program), { code: errnoName(errno) }));
  }
  return { pid: pid[0] ?? 0, stdout: reader(out.read), stderr: reader(err.read) };
}

function pipe(argv: Argv): { readonly read: number; readonly write: number } {
  const { pipe2, errno } = libc();
  const descriptors = new Int32Array(2);
  if (pipe2(new Uint8Array(descriptors.buffer), O_CLOEXEC) !== 0)
    throw notStarted(argv, Object.assign(new Error('pipe'), { code: errnoName(errno()) }));
  const [read = -1, write = -1] = descriptors;
  return { read, write };
}

function reader(fd: number): Socket {
  return new Socket({ fd, readable: true, writable: false });
}

function signalSet(signal: number): Uint8Array {
  const set = new Uint8Array(SIGSET_BYTES);
  set[(signal - 1) >> 3] = 1 << ((signal - 1) & 7);
  return set;
}

function pathOf(program: string, path: string): string | undefined {
  const places = program.includes('/') ? [program] : path.split(':').map((folder) => join(folder, program));
  return places.find((place) => {
    try {
      accessSync(place, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** Until it has ended, and left the table of processes. */
async function endOf(pid: number): Promise<Pick<RunResult, 'code' | 'signal'>> {
  const { waitpid } = libc();
  const status = new Int32Array(1);
  while (waitpid(pid, new Uint8Array(status.buffer), WNOHANG) === 0) await wait(systemClock, END_POLL_MS);
  const [value = 0] = status;
  const signal = value & 0x7f;
  if (signal === 0) return { code: (value >> 8) & 0xff, signal: null };
  return { code: null, signal: signalName(signal) };
}

function signalName(signal: number): string {
  return Object.entries(system.signals).find(([, value]) => value === signal)?.[0] ?? `signal ${signal}`;
}
