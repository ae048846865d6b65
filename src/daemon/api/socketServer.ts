/**
 * HTTP on a unix socket, for questions. Nothing depends on it: where the socket cannot be had, it is tried again, and the
 * log says so once.
 *
 * A file that a dead process left is replaced. One that answers is another proxy's, of another network namespace that
 * shares the directory, and stays.
 */
import { chmodSync, existsSync, lstatSync, mkdirSync, rmSync } from 'node:fs';
import type { Server } from 'node:http';
import { createConnection } from 'node:net';
import { dirname } from 'node:path';
import { errorCode, messageOf } from '../../errors.ts';
import type { Log } from '../../log/log.ts';
import type { Clock } from '../../time/clock.ts';
import { limitedServer, MOST_CONNECTIONS } from '../../telemetry/http/limits.ts';
import { close, listen, type StreamingPage } from '../../telemetry/http/server.ts';

interface SocketServerOptions {
  readonly path: string;
  /** Permissions of the socket. */
  readonly mode: number;
  readonly page: StreamingPage;
  readonly log: Log;
  readonly clock: Clock;
}

const RETRY_MS = 10_000;

export class SocketServer {
  readonly #options: SocketServerOptions;
  #server: Server | undefined;
  #cancelRetry: (() => void) | undefined;
  #attempt: Promise<void> = Promise.resolve();
  #isStopped = false;
  #isFailing = false;

  constructor(options: SocketServerOptions) {
    this.#options = options;
  }

  /** Resolves after the first attempt, also when it has failed. */
  start(): Promise<void> {
    this.#attempt = this.#bind();
    return this.#attempt;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancelRetry?.();
    await this.#attempt;
    if (this.#server) await close(this.#server);
    this.#server = undefined;
  }

  async #bind(): Promise<void> {
    const { path, mode, page, log, clock } = this.#options;
    const server = limitedServer(page, log);
    try {
      await makeRoom(path);
      await listenAt(server, path, mode);
    } catch (error) {
      const fields = { socket: path, err: error, retryingTime: `${RETRY_MS / 1000}s` };
      if (this.#isFailing) log.verbose(2, 'The socket for questions cannot be had yet', fields);
      else log.warn('Cannot listen for questions; serving without', fields);
      this.#isFailing = true;
      if (!this.#isStopped) this.#cancelRetry = clock.schedule(RETRY_MS, () => void this.start());
      return;
    }
    this.#isFailing = false;
    log.verbose(1, 'Answering questions', { socket: path });
    server.on('error', (error) => log.warn('The socket for questions failed', { socket: path, err: error }));
    if (this.#isStopped) await close(server);
    else this.#server = server;
  }
}

/** Makes the directory; deletes a socket that nobody listens at. */
async function makeRoom(path: string): Promise<void> {
  mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
  if (!existsSync(path)) return;
  if (!lstatSync(path).isSocket()) throw new Error(`${path} exists and is no socket`);
  if (await isAnswered(path)) throw new Error(`another process listens at ${path}`);
  rmSync(path, { force: true });
}

const PROBE_LIMIT_MS = 2000;

/** Whoever does not refuse has it: it may be busy. */
function isAnswered(path: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ path });
    const end = (result: boolean): void => {
      socket.destroy();
      resolve(result);
    };
    socket.setTimeout(PROBE_LIMIT_MS, () => end(true));
    socket.once('connect', () => end(true));
    socket.once('error', (error) => {
      if (['ECONNREFUSED', 'ENOENT'].includes(errorCode(error) ?? '')) end(false);
      else if (errorCode(error) === 'EAGAIN') end(true);
      else reject(new Error(`cannot ask who listens at ${path}: ${messageOf(error)}`, { cause: error }));
    });
  });
}

/** From its first moment on with these permissions and no others. */
async function listenAt(server: Server, path: string, mode: number): Promise<void> {
  const before = process.umask(0o777 & ~mode);
  try {
    // Binds before it returns; what it awaits is the notification.
    const listening = listen(server, { path, backlog: MOST_CONNECTIONS });
    process.umask(before);
    await listening;
    chmodSync(path, mode);
  } finally {
    process.umask(before);
  }
}
