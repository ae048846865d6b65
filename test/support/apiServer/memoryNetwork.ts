/** A network inside the test: one server, connections that are streams, and a clock that waits until they are quiet. */
import type { Server } from 'node:http';
import { Duplex } from 'node:stream';
import { Agent, buildConnector, type Dispatcher } from 'undici';
import type { ApiAccess, Identity } from '../../../src/sources/api/credentials/identity.ts';
import { FakeClock } from '../../time/fakeClock.ts';

/** Turns of the event loop in which nothing moves before all is taken to be quiet. */
const QUIET_TURNS = 4;

export class MemoryNetwork {
  /** Nothing: connections are refused. */
  server: Server | undefined;
  /** How many connections were asked for, refused ones included. */
  attempts = 0;
  readonly clock = new FakeClock(() => this.quiet());
  #moves = 0;

  /** Resolves when no byte is under way and nobody works on one. */
  async quiet(): Promise<void> {
    for (let idle = 0; idle < QUIET_TURNS; idle++) {
      const before = this.#moves;
      await new Promise((resolve) => setImmediate(resolve));
      if (this.#moves !== before) idle = -1;
    }
  }

  /** As the product makes it, over this network. */
  createDispatcher({ insecure, serverName }: ApiAccess, { ca, certificate, key }: Identity): Dispatcher {
    const secured = buildConnector({
      rejectUnauthorized: !insecure,
      ...(serverName !== undefined && { servername: serverName }),
      ...(ca !== undefined && { ca }),
      ...(certificate !== undefined && { cert: certificate }),
      ...(key !== undefined && { key }),
    });
    const connect: buildConnector.connector = (options, callback) => {
      const socket = this.#open();
      if (socket === undefined) {
        const error = new Error(`connect ECONNREFUSED ${options.host}`);
        queueMicrotask(() => callback(Object.assign(error, { code: 'ECONNREFUSED' }), null));
      } else if (options.protocol === 'https:') {
        secured({ ...options, httpSocket: socket }, callback);
      } else {
        queueMicrotask(() => callback(null, socket));
      }
    };
    return new Agent({ connect, headersTimeout: 0, bodyTimeout: 0, keepAliveTimeout: 600_000 });
  }

  #open(): Socket | undefined {
    this.attempts++;
    if (this.server === undefined) return undefined;
    const moved = (): void => void this.#moves++;
    const [near, far] = [new End(moved), new End(moved)];
    near.peer = far;
    far.peer = near;
    this.server.emit('connection', far);
    return near as Duplex as Socket;
  }
}

type Socket = Parameters<Parameters<buildConnector.connector>[1]>[1] & object;

/** One end of a connection. */
class End extends Duplex {
  peer: End | undefined;
  readonly #moved: () => void;
  #written: (() => void) | undefined;
  #isEnded = false;

  constructor(moved: () => void) {
    super({ allowHalfOpen: true });
    this.#moved = moved;
  }

  override _read(): void {
    this.#moved();
    if (this.peer) this.peer.#proceed();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#moved();
    if (!this.peer || this.peer.destroyed || this.peer.push(chunk)) done();
    else this.#written = done;
  }

  override _final(done: () => void): void {
    this.#end();
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#end();
    done(error);
  }

  #proceed(): void {
    const written = this.#written;
    this.#written = undefined;
    written?.();
  }

  #end(): void {
    this.#moved();
    this.#proceed();
    if (this.peer) this.peer.#proceed();
    if (this.#isEnded || this.peer?.destroyed) return;
    this.#isEnded = true;
    this.peer?.push(null);
  }
}
