/** A whole proxy in the network namespace of this process, with an API server beside it, and questions to it. */
import { type ChildProcess, execFile, execFileSync, fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Status } from '../../src/explain/status.ts';
import type { ChangeRecord } from '../../src/explain/types.ts';
import type { Sizes } from '../cluster.ts';
import { type ApiOptions, type FromApi, probeEndpoint, type ToApi } from '../nftables/messages.ts';
import { ProxyProcess, writeConfig } from '../nftables/proxyProcess.ts';
import { type Answer, ask } from './ask.ts';

const API = fileURLToPath(new URL('bench-nftables-api.js', import.meta.url));
const JUNCTION = fileURLToPath(new URL('junction.js', import.meta.url));
/** Longer than the shortest time between two syncs. */
export const REST_MS = 1200;
const PATIENCE_MS = 600_000;

/** From the API server to the kernel, and the part of it that the proxy had. */
export interface ChangeTimes {
  readonly totalMs: number;
  readonly syncMs: number;
}

export class AskedProxy {
  readonly #socket: string;
  readonly #api: ChildProcess;
  #generation = 0;

  constructor(socket: string, api: ChildProcess) {
    this.#socket = socket;
    this.#api = api;
  }

  ask(path: string): Promise<Answer> {
    return ask(this.#socket, path);
  }

  async status(): Promise<Status> {
    return JSON.parse((await this.ask('/v1/status')).text) as Status;
  }

  async served(services: number): Promise<void> {
    for (const end = Date.now() + PATIENCE_MS; Date.now() < end; await sleep(200)) {
      const status = await this.status().catch(() => undefined);
      const family = status?.families.find((each) => each.family === 'IPv4');
      if (family?.isServed && family.services >= services) return;
    }
    throw new Error('the proxy does not serve');
  }

  command(...args: readonly string[]): Promise<number> {
    const started = performance.now();
    return new Promise((resolve, reject) => {
      execFile(
        process.execPath,
        [JUNCTION, ...args, '--api-socket', this.#socket],
        { maxBuffer: 1 << 30 },
        (error, _stdout, stderr) => {
          if (error) reject(new Error(`${args.join(' ')}: ${stderr}`));
          else resolve(performance.now() - started);
        },
      );
    });
  }

  /** One endpoint is replaced; how long it took from the API server to the kernel, and the sync of it. */
  async change(): Promise<ChangeTimes> {
    const endpoint = probeEndpoint(++this.#generation);
    const replaced = new Promise<number>((resolve) => {
      this.#api.once('message', (message: FromApi) => {
        if (message.kind === 'replaced') resolve(message.at);
      });
    });
    this.#api.send({ kind: 'replace', endpoint } satisfies ToApi);
    const at = await replaced;
    for (;;) {
      await sleep(REST_MS);
      const records = JSON.parse(
        (await this.ask('/v1/history?service=default/probe')).text,
      ) as readonly ChangeRecord[];
      const record = records.find(({ effects }) => effects.some((effect) => effect.includes(`${endpoint}:`)));
      if (record?.committedAt === undefined) continue;
      return { totalMs: record.committedAt - at, syncMs: record.committedAt - record.seenAt };
    }
  }

  async changes(count: number): Promise<readonly ChangeTimes[]> {
    const all: ChangeTimes[] = [];
    for (let change = 0; change < count; change++) all.push(await this.change());
    return all;
  }
}

/** It is there until `use` is done. */
export async function withAskedProxy<T>(
  sizes: Sizes,
  flags: readonly string[],
  use: (asked: AskedProxy, proxy: ProxyProcess) => Promise<T>,
): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'junction-bench-'));
  execFileSync('ip', ['link', 'set', 'lo', 'up']);
  const api = fork(API, [JSON.stringify({ sizes } satisfies ApiOptions)], { execArgv: [] });
  let proxy: ProxyProcess | undefined;
  try {
    const url = await new Promise<string>((resolve) => {
      api.on('message', (message: FromApi) => {
        if (message.kind === 'listening') resolve(message.url);
      });
    });
    const socket = join(folder, 'api.sock');
    const own = [`--api-socket=${socket}`, '--state-dir=', ...flags];
    proxy = new ProxyProcess([process.execPath, JUNCTION, 'run', ...own], writeConfig(folder, url));
    const asked = new AskedProxy(socket, api);
    const work = async (known: ProxyProcess): Promise<T> => {
      await asked.served(sizes.services);
      await sleep(REST_MS);
      return use(asked, known);
    };
    return await Promise.race([work(proxy), proxy.failed]);
  } finally {
    proxy?.end();
    if (api.connected) api.disconnect();
    rmSync(folder, { recursive: true });
  }
}
