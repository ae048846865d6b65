/** A server of the page with two files, on a port that the kernel chose. */
import { onTestFinished } from 'vitest';
import { limitedServer } from '../../src/telemetry/http/limits.ts';
import { BoundServer, plain, type StreamingPage } from '../../src/telemetry/http/server.ts';
import type { PageFile } from '../../src/ui/files.ts';
import { AccessCheck, type AccessOptions } from '../../src/ui/access.ts';
import { uiPage } from '../../src/ui/page.ts';
import { keptLog } from '../telemetry/http/support.ts';
import { FakeClock } from '../time/fakeClock.ts';

export const DOCUMENT = '<!doctype html><title>Junction</title>';
export const SCRIPT = 'export {};';

const FILES: ReadonlyMap<string, PageFile> = new Map([
  ['/index.html', { type: 'text/html; charset=utf-8', isForever: false, bytes: Buffer.from(DOCUMENT) }],
  [
    '/page-ABCDEFGH.js',
    { type: 'text/javascript; charset=utf-8', isForever: true, bytes: Buffer.from(SCRIPT) },
  ],
]);

interface Stage extends Pick<AccessOptions, 'token'> {
  readonly api?: StreamingPage;
}

export async function servePage({ token, api = ({ path }) => plain(200, `answer to ${path}`) }: Stage = {}) {
  const { log, lines } = keptLog();
  const clock = new FakeClock();
  const access = new AccessCheck({ names: ['Node1'], token, log, clock });
  const server = new BoundServer(
    { address: '127.0.0.1:0', log, clock },
    uiPage({ files: FILES, api, access }),
    { message: 'failed', what: 'failed at' },
    { makeServer: limitedServer },
  );
  await server.start();
  onTestFinished(() => server.stop());
  return { port: server.port, clock, lines };
}
