/** The page at an address of this machine. */
import { hostname } from 'node:os';
import { JunctionError } from '../errors.ts';
import type { Log } from '../log/log.ts';
import { hostPort, LOOPBACK } from '../model/ip.ts';
import { limitedServer } from '../telemetry/http/limits.ts';
import { BoundServer, type StreamingPage } from '../telemetry/http/server.ts';
import { systemClock } from '../time/systemClock.ts';
import { AccessCheck } from './access.ts';
import type { UiAddress } from './address.ts';
import { uiPage } from './page.ts';

interface PageOptions {
  readonly address: UiAddress;
  /** Unset: none is asked for. */
  readonly token?: string | undefined;
  readonly api: StreamingPage;
  readonly log: Log;
}

interface ServedPage {
  /** `http://127.0.0.1:10266/`; without the token. */
  readonly link: string;
  stop(): Promise<void>;
}

/** For the last bytes of streams. */
const GRACE_MS = 250;
/** What the kernel takes for every address. */
const EVERYWHERE: ReadonlySet<string> = new Set(['0.0.0.0', '::']);

/** Throws where the address is not free. */
export async function servePage({ address, token, api, log }: PageOptions): Promise<ServedPage> {
  const { host, port } = address;
  const access = new AccessCheck({ names: [hostname()], token, log, clock: systemClock });
  let failure: Error | undefined;
  const onHardFail = (error: Error): void => {
    failure = error;
  };
  const server = new BoundServer(
    { address: hostPort(host, port), log, clock: systemClock, onHardFail },
    uiPage({ api, access }),
    { message: 'Cannot serve the page', what: 'cannot serve the page at' },
    { makeServer: limitedServer, graceMs: GRACE_MS },
  );
  await server.start();
  if (failure) throw new JunctionError('PAGE_NOT_SERVED', failure.message, { cause: failure });
  const reached = EVERYWHERE.has(host) ? LOOPBACK.IPv4 : host;
  return { link: `http://${hostPort(reached, server.port ?? port)}/`, stop: () => server.stop() };
}
