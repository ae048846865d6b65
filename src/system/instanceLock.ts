/**
 * One Junction for each network namespace. The lock is an abstract unix socket: such names belong to a network namespace,
 * whatever files containers share, and the kernel frees them however a process ends. Whoever connects gets to know who holds
 * it; the process id is the kernel's, which translates it into our own pid namespace.
 */
import { createServer, type Server, Socket } from 'node:net';
import { constants } from 'node:os';
import { attempt, errorCode, JunctionError } from '../errors.ts';
import { systemClock } from '../time/systemClock.ts';
import { wait } from '../time/wait.ts';
import { AF_UNIX, errnoName, libc, peerCredentials, SOCK_CLOEXEC, SOCK_STREAM, unixAddress } from './libc.ts';

/** All of sun_path: Node 20 pads an abstract name with NULs up to there, later versions do not. */
const PATH_BYTES = 108;
const NAME = '\0junction-service-proxy';

export interface InstanceLock {
  release(): Promise<void>;
}

interface InstanceLockOptions {
  /** What others get to know besides process and command line: `mode`, `node`. */
  readonly about: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  /** How long to wait for one that is ending. */
  readonly waitMs: number;
  readonly onWait: (holder: string) => void;
  /** Another user's process has the name: it cannot be a Junction that works, and must not keep us from it. */
  readonly onImpostor: (holder: string) => void;
  /** Another name, for tests that must not meet a Junction on the same machine. */
  readonly name?: string | undefined;
}

const RETRY_MS = 200;

/** Throws `ALREADY_RUNNING`, naming the holder, when it did not end in time. */
export async function takeInstanceLock(options: InstanceLockOptions): Promise<InstanceLock> {
  const { signal, waitMs, onWait, onImpostor } = options;
  const path = pathOf(options.name);
  const until = performance.now() + waitMs;
  for (let isFirst = true; ; isFirst = false) {
    signal.throwIfAborted();
    const server = await listen(path, printSelf(options.about));
    if (server) return { release: () => close(server) };
    const holder = await findHolder(options.name);
    if (holder?.isImpostor) {
      onImpostor(holder.text);
      return { release: () => Promise.resolve() };
    }
    if (holder && performance.now() >= until) throw alreadyRunning(holder.text);
    if (holder && isFirst) onWait(holder.text);
    await wait(systemClock, RETRY_MS, signal);
  }
}

/** `pid 123 (…), since …`; `undefined`: no Junction runs in this network namespace. */
export async function findHolder(name?: string) {
  const peer = connectUnix(pathOf(name));
  if (!peer) return undefined;
  const answer = await readAll(peer);
  return { text: printHolder(peer, answer), isImpostor: peer.uid !== 0 && process.getuid?.() === 0 };
}

export function alreadyRunning(holder: string, hint?: string): JunctionError {
  return new JunctionError('ALREADY_RUNNING', `a Junction serves this network namespace already: ${holder}`, {
    hint,
  });
}

function pathOf(name = NAME): string {
  return name.padEnd(PATH_BYTES, '.');
}

async function listen(path: string, text: string): Promise<Server | undefined> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.end(text);
  });
  const isHeld = await new Promise<boolean>((resolve, reject) => {
    server.once('error', (error) => {
      if (errorCode(error) === 'EADDRINUSE') resolve(true);
      else reject(error);
    });
    server.listen({ path }, () => resolve(false));
  });
  return isHeld ? undefined : server.unref();
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}

const STARTED = new Date(Date.now() - process.uptime() * 1000);

function printSelf(about: InstanceLockOptions['about']): string {
  return JSON.stringify({
    pid: process.pid,
    command: [process.argv0, ...process.argv.slice(1)].join(' '),
    since: STARTED.toISOString(),
    ...about,
  });
}

const ANSWER_LIMIT_MS = 2000;
const MOST_BYTES = 16_384;

/** Empty when the holder does not answer: it may be stopped, or busy for long. */
async function readAll({ fd }: Peer): Promise<string> {
  const socket = new Socket({ fd });
  socket.setTimeout(ANSWER_LIMIT_MS, () => socket.destroy());
  socket.setEncoding('utf8');
  let text = '';
  await new Promise<void>((resolve) => {
    socket.on('data', (chunk: string) => {
      text += chunk;
      if (text.length > MOST_BYTES) socket.destroy();
    });
    socket.on('error', () => undefined);
    socket.once('close', () => resolve());
  });
  return text;
}

/** The answer is text of another process: only known fields, quoted and cut. */
function printHolder({ pid, uid }: Peer, answer: string): string {
  const fields = parse(answer);
  const field = (name: string): string | undefined => {
    const value = fields[name];
    return typeof value === 'string' || typeof value === 'number' ? String(value).slice(0, 300) : undefined;
  };
  const ownPid = field('pid');
  const process =
    pid > 0 ? `pid ${pid}` : `pid ${ownPid ?? 'unknown'} of another pid namespace (another container)`;
  const parts = [
    process,
    ...(uid === 0 ? [] : [`user ${uid}`]),
    ...['mode', 'node', 'since'].flatMap((name) => {
      const value = field(name);
      return value === undefined ? [] : [`${name} ${value}`];
    }),
    ...(field('command') === undefined ? [] : [`command ${JSON.stringify(field('command'))}`]),
  ];
  return answer === '' ? `${parts.join(', ')}; it does not answer` : parts.join(', ');
}

function parse(text: string): Readonly<Record<string, unknown>> {
  const value = attempt((): unknown => JSON.parse(text));
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

/** The other end of a connection. */
interface Peer {
  /** The connection; whoever asked closes it. */
  readonly fd: number;
  /** In our pid namespace; 0 where it cannot be seen from here. */
  readonly pid: number;
  readonly uid: number;
}

const SOCK_NONBLOCK = 0o4000;

/**
 * Connects to an abstract unix socket, whose path begins with a NUL. Returns also which process listens, which Node has no
 * way to ask for; `undefined`: none does.
 */
function connectUnix(path: string): Peer | undefined {
  const { socket, connect, close, errno } = libc();
  const fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) throw failed('make a unix socket', errno());
  const address = unixAddress(path);
  if (connect(fd, address, address.length) === 0) {
    const credentials = peerCredentials(fd);
    if (typeof credentials === 'object') return { fd, ...credentials };
    close(fd);
    throw failed('ask for the credentials of a unix socket', credentials);
  }
  const code = errno();
  close(fd);
  // EAGAIN: its backlog is full, so a process listens there, which is asked again.
  if (code === constants.errno.ECONNREFUSED || code === constants.errno.EAGAIN) return undefined;
  throw failed('connect to a unix socket', code);
}

function failed(what: string, code: number): JunctionError {
  return new JunctionError('UNIX_SOCKET_FAILED', `cannot ${what}: ${errnoName(code)}`);
}
