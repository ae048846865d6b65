/** A server at a configured address, which somebody else may still hold: it tries until it gets it, or gives up at once. */
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Log } from '../../log/log.ts';
import type { Clock } from '../../time/clock.ts';
import type { Page } from './answer.ts';
import { close, listenAsGo, splitHostPort } from './listen.ts';
import { pageServer } from './serve.ts';

export interface BindOptions {
  /** `0.0.0.0:10256`, `[::1]:10256`. */
  readonly address: string;
  readonly log: Log;
  readonly clock: Clock;
  /** Where given: called instead of trying again. */
  readonly onHardFail?: ((error: Error) => void) | undefined;
}

interface Failure {
  /** What the log says. */
  readonly message: string;
  /** What went wrong, before the address. */
  readonly what: string;
}

const RETRY_MS = 5000;

export class BoundServer {
  readonly #options: BindOptions;
  readonly #page: Page;
  readonly #failure: Failure;
  #server: Server | undefined;
  #cancelRetry: (() => void) | undefined;
  #attempt: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(options: BindOptions, page: Page, failure: Failure) {
    this.#options = options;
    this.#page = page;
    this.#failure = failure;
  }

  /** Resolves after the first attempt, whatever came of it. */
  start(): Promise<void> {
    this.#attempt = this.#tryToBind();
    return this.#attempt;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelRetry?.();
    await this.#attempt;
    if (this.#server) await close(this.#server);
    this.#server = undefined;
  }

  /** `undefined` while it has none. */
  get port(): number | undefined {
    const address = this.#server?.address();
    return isAddressInfo(address) ? address.port : undefined;
  }

  async #tryToBind(): Promise<void> {
    const { address, log } = this.#options;
    const server = pageServer(this.#page, log);
    try {
      const hostPort = splitHostPort(address);
      if (!hostPort) throw new Error(`${address} is not an address with a port`);
      await listenAsGo(server, hostPort);
    } catch (error) {
      this.#onFailure(error);
      return;
    }
    server.on('error', (error) => log.error(this.#failure.message, { address, err: error }));
    if (this.#stopped) await close(server);
    else this.#server = server;
  }

  #onFailure(cause: unknown): void {
    const { address, log, clock, onHardFail } = this.#options;
    const reason = cause instanceof Error ? cause.message : String(cause);
    const error = new Error(`${this.#failure.what} ${address}: ${reason}`, { cause });
    log.error(this.#failure.message, { err: error });
    if (onHardFail) onHardFail(error);
    else if (!this.#stopped) {
      this.#cancelRetry = clock.schedule(RETRY_MS, () => {
        this.#attempt = this.#tryToBind();
      });
    }
  }
}

function isAddressInfo(address: AddressInfo | string | null | undefined): address is AddressInfo {
  return typeof address === 'object' && address !== null;
}
