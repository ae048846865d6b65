/** Questions to a whole proxy in the network namespace of this process, with an API server beside it. */
import { type ChildProcess, execFile, execFileSync, fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Status } from '../../src/explain/status.ts';
import type { ChangeRecord } from '../../src/explain/types.ts';
import { type ApiOptions, type FromApi, PROBE, probeEndpoint, type ToApi } from '../nftables/messages.ts';
import { ProxyProcess, writeConfig } from '../nftables/proxyProcess.ts';
import type { QuestionRow, QuestionsRun, QuestionsTask } from './messages.ts';

const API = fileURLToPath(new URL('bench-nftables-api.js', import.meta.url));
const JUNCTION = fileURLToPath(new URL('junction.js', import.meta.url));
/** Longer than the shortest time between two syncs. */
const REST_MS = 1200;
const PATIENCE_MS = 600_000;
const METRICS = 'http://127.0.0.1:10249/metrics';

class Bench {
  readonly #socket: string;
  readonly #api: ChildProcess;
  #generation = 0;

  constructor(socket: string, api: ChildProcess) {
    this.#socket = socket;
    this.#api = api;
  }

  /** Resolves to the answer's length and how long it took. */
  ask(path: string): Promise<{ readonly text: string; readonly ms: number }> {
    const started = performance.now();
    return new Promise((resolve, reject) => {
      const asked = request({ socketPath: this.#socket, path, agent: false }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.once('error', reject);
        response.once('end', () =>
          resolve({ text: Buffer.concat(chunks).toString(), ms: performance.now() - started }),
        );
      });
      asked.once('error', reject);
      asked.end();
    });
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
  async change(): Promise<{ readonly totalMs: number; readonly syncMs: number }> {
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
}

async function main(task: QuestionsTask): Promise<QuestionsRun> {
  const folder = mkdtempSync(join(tmpdir(), 'junction-bench-'));
  execFileSync('ip', ['link', 'set', 'lo', 'up']);
  const api = fork(API, [JSON.stringify({ sizes: task.sizes } satisfies ApiOptions)], { execArgv: [] });
  let proxy: ProxyProcess | undefined;
  try {
    const url = await new Promise<string>((resolve) => {
      api.on('message', (message: FromApi) => {
        if (message.kind === 'listening') resolve(message.url);
      });
    });
    const socket = join(folder, 'api.sock');
    const command = [process.execPath, JUNCTION, 'run', `--api-socket=${socket}`, '--state-dir='] as const;
    proxy = new ProxyProcess(command, writeConfig(folder, url));
    return await Promise.race([measure(new Bench(socket, api), proxy, task), proxy.failed]);
  } finally {
    proxy?.end();
    if (api.connected) api.disconnect();
    rmSync(folder, { recursive: true });
  }
}

const TO_PROBE = `${PROBE.address}:${PROBE.port}`;
/** As many as a browser asks for at one time. */
const SOME_SERVICES = `/v1/services?${Array.from(
  { length: 200 },
  (_, index) => `service=team-${index % 100}/service-${index}`,
).join('&')}`;
const BY_ENDPOINT = '/v1/names?kind=services&endpoint=192.0.2.';
const EXPLAIN = `/v1/explain?from=outside&to=${TO_PROBE}`;
/** What is asked in a row; the heaviest is one of ten. */
const IN_A_ROW: readonly string[] = [
  EXPLAIN,
  '/v1/explain/default/probe',
  EXPLAIN,
  SOME_SERVICES,
  EXPLAIN,
  BY_ENDPOINT,
  '/v1/services?format=table',
  '/v1/objects/default/probe',
  '/v1/doctor',
  '/v1/services',
];

async function measure(bench: Bench, proxy: ProxyProcess, task: QuestionsTask): Promise<QuestionsRun> {
  await bench.served(task.sizes.services);
  await sleep(REST_MS);
  const rows: QuestionRow[] = [];
  for (const [name, path, ...command] of [
    ['status', '/v1/status', 'status'],
    ['explain, a packet', EXPLAIN, 'explain', '--from', 'outside', '--to', TO_PROBE],
    ['explain, a service', '/v1/explain/default/probe', 'explain', 'default/probe'],
    ['endpoints', '/v1/endpoints/default/probe', 'endpoints', 'default/probe'],
    ['services', '/v1/services?format=table', 'services'],
    ['services as JSON', '/v1/services', 'services', '--output', 'json'],
    ['some services as JSON', SOME_SERVICES],
    ['services by endpoint', BY_ENDPOINT],
    ['objects of a service', '/v1/objects/default/probe'],
    ['events', '/v1/events'],
    ['doctor', '/v1/doctor'],
    ['snapshot', '/v1/snapshot'],
  ] as const)
    rows.push(await row(bench, name, path, command, task.repetitions));
  const quiet = await changes(bench, task.changes);
  const stop = new AbortController();
  const asking = askInARow(bench, task.questions, stop.signal);
  const asked = await changes(bench, task.changes);
  stop.abort();
  const answered = await asking;
  const { families } = await bench.status();
  const ipv4 = families.find(({ family }) => family === 'IPv4');
  return {
    rows,
    quietMs: quiet.map(({ totalMs }) => totalMs),
    askedMs: asked.map(({ totalMs }) => totalMs),
    syncMs: { quiet: quiet.map(({ syncMs }) => syncMs), asked: asked.map(({ syncMs }) => syncMs) },
    answered,
    proof: await proofCost(ipv4?.proof.disagreementCount ?? 0),
    history: ipv4?.history ?? { records: 0, bytes: 0, mostBytes: 0 },
    resident: proxy.resident(),
  };
}

async function row(
  bench: Bench,
  name: string,
  path: string,
  command: readonly string[],
  repetitions: number,
): Promise<QuestionRow> {
  const socketMs: number[] = [];
  const commandMs: number[] = [];
  let bytes = 0;
  for (let count = 0; count < repetitions; count++) {
    const { text, ms } = await bench.ask(path);
    bytes = text.length;
    socketMs.push(ms);
    if (command.length > 0) commandMs.push(await bench.command(...command));
  }
  return { name, bytes, socketMs, commandMs };
}

async function changes(bench: Bench, count: number) {
  const all = [];
  for (let change = 0; change < count; change++) all.push(await bench.change());
  return all;
}

/** One after the other without a pause, and so many in a row again until the end. */
async function askInARow(bench: Bench, most: number, signal: AbortSignal): Promise<number> {
  let answered = 0;
  while (!signal.aborted) {
    for (let count = 0; count < most && !signal.aborted; count++, answered++)
      await bench.ask(IN_A_ROW[count % IN_A_ROW.length] ?? EXPLAIN);
  }
  return answered;
}

async function proofCost(disagreements: number): Promise<QuestionsRun['proof']> {
  const text = await (await fetch(METRICS)).text();
  const value = (name: string): number => {
    const samples = text.matchAll(new RegExp(`^${name}\\{[^}]*IPv4[^}]*\\} (\\S+)$`, 'gm'));
    return [...samples].reduce((sum, [, each]) => sum + Number(each), 0);
  };
  return {
    packets: value('junction_proof_packets_total'),
    ms: value('junction_proof_duration_seconds_sum') * 1000,
    cpuMs: value('junction_proof_processor_seconds_total') * 1000,
    disagreements,
  };
}

process.stdout.write(`${JSON.stringify(await main(JSON.parse(process.argv[2] ?? '{}') as QuestionsTask))}\n`);
