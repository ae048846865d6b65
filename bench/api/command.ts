/** `npm run bench -- api`: an API server in one process, the proxy in another, and this one that reads them both. */
import { type ChildProcess, fork } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { numberOption, progress, refuseUnknown } from '../arguments.ts';
import type {
  Churn,
  FromProxy,
  FromServer,
  ProxyOptions,
  ServerOptions,
  ToProxy,
  ToServer,
} from './messages.ts';
import { percentiles } from './meters.ts';
import { printReport, type Report } from './report.ts';
import type { Encoding } from '../../src/sources/api/encoding.ts';

const CERTIFICATES = fileURLToPath(new URL('../test/support/apiServer/certs', import.meta.url));
const SERVER = fileURLToPath(new URL('bench-api-server.js', import.meta.url));
const PROXY = fileURLToPath(new URL('bench-api-proxy.js', import.meta.url));

const OPTIONS = ['--services', '--endpoints', '--churn-seconds', '--rate', '--replace', '--min-sync-period'];
const STARTS = 5;

export async function apiCommand(args: readonly string[]): Promise<void> {
  refuseUnknown(args, OPTIONS, ['--pages', '--json']);
  const encoding: Encoding = args.includes('--json') ? 'json' : 'protobuf';
  const minSyncPeriodMs = numberOption(args, '--min-sync-period', 0);
  if (!existsSync(SERVER))
    throw new Error('this benchmark needs a whole checkout: its API server is with the tests');
  const size = {
    services: numberOption(args, '--services', 10_000),
    endpoints: numberOption(args, '--endpoints', 10),
  };
  const churn: Churn = {
    seconds: numberOption(args, '--churn-seconds', 60),
    rate: numberOption(args, '--rate', 100),
    replace: numberOption(args, '--replace', 0),
  };
  const streamsLists = !args.includes('--pages');
  progress(`an API server with ${size.services} services and their EndpointSlices`);
  const server = new Child<FromServer, ToServer>(SERVER, {
    ...size,
    streamsLists,
    certificates: CERTIFICATES,
  } satisfies ServerOptions);
  try {
    const listening = await server.told('listening');
    const reach = { port: listening.port, ca: `${CERTIFICATES}/ca.crt`, minSyncPeriodMs };
    const toPlan = await compareEncodings(reach);
    progress('start, then 20 s of rest');
    const proxy = new Child<FromProxy, ToProxy>(PROXY, { ...reach, encoding } satisfies ProxyOptions);
    try {
      const start = await proxy.told('started');
      progress(`${churn.rate} changes a second for ${churn.seconds} s`);
      proxy.tell({ kind: 'begin' });
      server.tell({ kind: 'churn', ...churn });
      const { changes } = await server.told('churned');
      proxy.tell({ kind: 'end' });
      const end = await proxy.told('ended');
      progress('');
      process.stdout.write(
        printReport({ size, streamsLists, encoding, listening, churn, changes, start, end, toPlan }),
      );
    } finally {
      proxy.end();
    }
  } finally {
    server.end();
  }
}

/** CPU from the first answer to the first plan, of some starts in each encoding, in turns. */
async function compareEncodings(reach: Omit<ProxyOptions, 'encoding'>): Promise<Report['toPlan']> {
  const cpuMs: Record<Encoding, number[]> = { json: [], protobuf: [] };
  for (let round = 0; round < STARTS; round++) {
    for (const encoding of ['json', 'protobuf'] as const) {
      progress(`${encoding}: start ${round + 1} of ${STARTS}, to the first plan`);
      const proxy = new Child<FromProxy, ToProxy>(PROXY, { ...reach, encoding } satisfies ProxyOptions);
      try {
        cpuMs[encoding].push((await proxy.told('planned')).cpuMs);
      } finally {
        proxy.end();
      }
    }
  }
  return { json: percentiles(cpuMs.json), protobuf: percentiles(cpuMs.protobuf) };
}

/** A process that this one has started, and what they tell each other. */
class Child<From extends { readonly kind: string }, To extends object> {
  readonly #process: ChildProcess;

  constructor(path: string, options: object) {
    this.#process = fork(path, [JSON.stringify(options)], { execArgv: [] });
  }

  told<Kind extends From['kind']>(kind: Kind): Promise<Extract<From, { readonly kind: Kind }>> {
    return new Promise((resolve, reject) => {
      this.#process.once('exit', (code) => reject(new Error(`a process of the benchmark ended (${code})`)));
      this.#process.on('message', (message: Extract<From, { readonly kind: Kind }>) => {
        if (message.kind === kind) resolve(message);
      });
    });
  }

  tell(message: To): void {
    this.#process.send(message);
  }

  end(): void {
    if (this.#process.connected) this.#process.disconnect();
  }
}
