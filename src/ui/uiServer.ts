/** The page at an address of this node. */
import { hostname } from 'node:os';
import type { UiAddress } from '../config/uiAddress.ts';
import type { Log } from '../log/log.ts';
import { hostPort, type Ip } from '../model/ip.ts';
import { limitedServer } from '../telemetry/http/limits.ts';
import { BoundServer, type StreamingPage } from '../telemetry/http/server.ts';
import type { Clock } from '../time/clock.ts';
import { AccessCheck, type AccessOptions } from './access.ts';
import { uiPage } from './page.ts';

export interface UiServerOptions extends Pick<AccessOptions, 'token'> {
  readonly address: UiAddress;
  /** By which it may be asked for too. */
  readonly nodeName?: string | undefined;
  readonly api: StreamingPage;
  readonly log: Log;
  readonly clock: Clock;
  /** It has the address now; later than the start where another program had it. */
  readonly onServing?: (link: string) => void;
  /** Where given: called instead of trying again. */
  readonly onHardFail?: (error: Error) => void;
}

/** For the last bytes of streams. */
const GRACE_MS = 250;
/** What the kernel takes for every address. */
const EVERYWHERE: ReadonlySet<string> = new Set(['0.0.0.0', '::']);

export class UiServer {
  readonly #server: BoundServer;
  readonly #host: Ip;

  constructor({ address, token, nodeName, api, log, clock, onServing, onHardFail }: UiServerOptions) {
    const { host, port } = address;
    this.#host = host;
    const names = [hostname(), ...(nodeName === undefined ? [] : [nodeName])];
    const access = new AccessCheck({ names, token, log, clock });
    this.#server = new BoundServer(
      { address: hostPort(host, port), log, clock, onHardFail },
      uiPage({ api, access }),
      { message: 'Cannot serve the page', what: 'cannot serve the page at' },
      {
        makeServer: limitedServer,
        logsOnce: true,
        graceMs: GRACE_MS,
        onBound: () => onServing?.(this.link ?? ''),
      },
    );
  }

  /** Resolves after the first attempt, also when it has failed. */
  start(): Promise<void> {
    return this.#server.start();
  }

  stop(): Promise<void> {
    return this.#server.stop();
  }

  get port(): number | undefined {
    return this.#server.port;
  }

  /** `http://127.0.0.1:10266/`; undefined while it has no port. Without the token. */
  get link(): string | undefined {
    const { port } = this;
    if (port === undefined) return undefined;
    return `http://${EVERYWHERE.has(this.#host) ? `127.0.0.1:${port}` : hostPort(this.#host, port)}/`;
  }
}
