/** The page at an address of this node. */
import type { Log } from '../log/log.ts';
import type { Clock } from '../time/clock.ts';
import { BoundServer, parseListenAddress, type StreamingPage } from '../telemetry/http/server.ts';
import { readPageFiles, type PageFile } from './files.ts';
import { Guard } from './guard.ts';
import { uiPage } from './page.ts';

interface UiServerOptions {
  /** `127.0.0.1:10257` */
  readonly address: string;
  readonly token?: string | undefined;
  readonly api: StreamingPage;
  readonly log: Log;
  readonly clock: Clock;
  readonly onHardFail?: (error: Error) => void;
}

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]'];

export class UiServer {
  readonly #server: BoundServer;
  readonly #host: string;

  constructor({ address, token, api, log, clock, onHardFail }: UiServerOptions) {
    this.#host = parseListenAddress(address)?.host ?? '';
    const name = this.#host.includes(':') ? `[${this.#host}]` : this.#host;
    const guard = new Guard({ hosts: [...LOOPBACK, name.toLowerCase()], token });
    let files: ReadonlyMap<string, PageFile> | undefined;
    const page = uiPage({ files: () => (files ??= readPageFiles()), api, guard });
    this.#server = new BoundServer({ address, log, clock, onHardFail }, page, {
      message: 'Cannot serve the page',
      what: 'cannot serve the page at',
    });
  }

  start(): Promise<void> {
    return this.#server.start();
  }

  stop(): Promise<void> {
    return this.#server.stop();
  }

  get port(): number | undefined {
    return this.#server.port;
  }

  /** `http://127.0.0.1:10257/`; undefined while it has no port. */
  get link(): string | undefined {
    const { port } = this;
    const host = ['', '0.0.0.0', '::'].includes(this.#host) ? '127.0.0.1' : this.#host;
    return port === undefined ? undefined : `http://${host.includes(':') ? `[${host}]` : host}:${port}/`;
  }
}
