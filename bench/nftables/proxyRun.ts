/** One proxy in the network namespace of this process: an API server beside it, a client and endpoints on wires. */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import {
  type AnswerTask,
  type ApiOptions,
  type FromApi,
  PROBE,
  probeEndpoint,
  type ProxyRun,
  type ProxyTask,
  type Reached,
  type ToApi,
  type WatchTask,
} from './messages.ts';
import { ProxyProcess, writeConfig } from './proxyProcess.ts';
import { openWires, type Wires } from './wires.ts';

const API = fileURLToPath(new URL('bench-nftables-api.js', import.meta.url));
const ANSWERER = fileURLToPath(new URL('bench-nftables-node.js', import.meta.url));
const WATCHER = fileURLToPath(new URL('bench-nftables-watcher.js', import.meta.url));
/** Where the generated endpoints are. */
const ENDPOINTS = '10.128.0.0/9';
/** After which nothing of a start or a change goes on, and the shortest time between two syncs is over. */
const REST_MS = 3000;
const PATIENCE_MS = 600_000;

async function main({ command, sizes, changes }: ProxyTask): Promise<ProxyRun> {
  const folder = mkdtempSync(join(tmpdir(), 'junction-bench-'));
  const wires = await openWires(ENDPOINTS);
  const api = fork(API, [JSON.stringify({ sizes } satisfies ApiOptions)], { execArgv: [] });
  const children: ChildProcess[] = [];
  let proxy: ProxyProcess | undefined;
  try {
    const { url } = await told(api, 'listening');
    const watch = await around(wires, children);
    proxy = new ProxyProcess(command, writeConfig(folder, url));
    return await Promise.race([measure(proxy, api, watch, changes), proxy.failed, tooLate()]);
  } finally {
    proxy?.end();
    for (const child of children) child.kill();
    if (api.connected) api.disconnect();
    wires.close();
    rmSync(folder, { recursive: true });
  }
}

/** Endpoints that answer, and a client that dials. */
async function around(wires: Wires, children: ChildProcess[]): Promise<AsyncIterator<string>> {
  const answer: AnswerTask = { kind: 'answer', addresses: [], port: PROBE.endpointPort };
  const watch: WatchTask = { address: PROBE.address, port: PROBE.port };
  const answerer = inside(wires.server.pid, ANSWERER, answer);
  children.push(answerer);
  if (answerer.stdout) await once(answerer.stdout, 'data');
  const watcher = inside(wires.client.pid, WATCHER, watch);
  children.push(watcher);
  if (!watcher.stdout) throw new Error('a program without output');
  return createInterface({ input: watcher.stdout })[Symbol.asyncIterator]();
}

async function measure(
  proxy: ProxyProcess,
  api: ChildProcess,
  watch: AsyncIterator<string>,
  changes: number,
): Promise<ProxyRun> {
  const first = await next(watch, probeEndpoint(0));
  const forwardingCpuMs = proxy.cpuMs();
  await sleep(REST_MS);
  const changeMs: number[] = [];
  const changeCpuMs: number[] = [];
  for (let change = 1; change <= changes; change++) {
    const before = proxy.cpuMs();
    const replaced = told(api, 'replaced');
    api.send({ kind: 'replace', endpoint: probeEndpoint(change) } satisfies ToApi);
    const { at } = await next(watch, probeEndpoint(change));
    changeMs.push(at - (await replaced).at);
    await sleep(REST_MS);
    changeCpuMs.push(proxy.cpuMs() - before);
  }
  const forwardingMs = first.at - proxy.startedAt;
  return { forwardingMs, forwardingCpuMs, resident: proxy.resident(), changeMs, changeCpuMs };
}

async function next(watch: AsyncIterator<string>, endpoint: string): Promise<Reached> {
  for (;;) {
    const { value, done } = await watch.next();
    if (done) throw new Error('the client has ended');
    const reached = JSON.parse(value) as Reached;
    if (reached.endpoint === endpoint) return reached;
  }
}

function told<Kind extends FromApi['kind']>(
  api: ChildProcess,
  kind: Kind,
): Promise<Extract<FromApi, { readonly kind: Kind }>> {
  return new Promise((resolve, reject) => {
    api.once('exit', () => reject(new Error('the API server has ended')));
    api.on('message', (message: Extract<FromApi, { readonly kind: Kind }>) => {
      if (message.kind === kind) resolve(message);
    });
  });
}

function inside(pid: number, program: string, task: object): ChildProcess {
  const args = [`--net=/proc/${pid}/ns/net`, process.execPath, program, JSON.stringify(task)];
  return spawn('nsenter', args, { stdio: ['ignore', 'pipe', 'inherit'] });
}

async function tooLate(): Promise<never> {
  await sleep(PATIENCE_MS, undefined, { ref: false });
  throw new Error('the proxy does not forward');
}

process.stdout.write(`${JSON.stringify(await main(JSON.parse(process.argv[2] ?? '{}') as ProxyTask))}\n`);
