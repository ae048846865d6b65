/**
 * One mode and one large object, in the network namespace of this process: create it, change its endpoints, delete it,
 * restart the daemon with it in place. All the while another service's endpoints change, and somebody asks /livez.
 */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { AnswerTask, Reached, WatchTask } from '../nftables/messages.ts';
import { openWires, type Wires } from '../nftables/wires.ts';
import { Daemon, LIVEZ, writeConfig } from './daemon.ts';
import {
  type ApiOptions,
  type Dialled,
  ENDPOINT_PORT,
  type FromApi,
  type HostileRun,
  type HostileTask,
  LARGE,
  OTHER,
  type Phase,
  probeEndpoint,
  type ToApi,
} from './messages.ts';

const beside = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const API = beside('bench-hostile-api.js');
const LIVEZ_ASKER = beside('bench-hostile-livez.js');
const ANSWERER = beside('bench-nftables-node.js');
const WATCHER = beside('bench-nftables-watcher.js');
const ENDPOINTS = '10.128.0.0/9';
/** A change that takes longer counts as not done. */
const PATIENCE_MS = 60_000;
const REST_MS = 1000;

class Stage {
  readonly #reached: Record<Dialled, Reached[]> = { large: [], other: [] };
  readonly #livez: { readonly at: number; readonly ms: number }[] = [];
  readonly #children: ChildProcess[] = [];
  readonly #api: ChildProcess;
  readonly #task: HostileTask;
  readonly phases: Phase[] = [];
  #otherTimes = 0;
  #largeTimes = 0;
  #restartedAt = 0;

  constructor(task: HostileTask) {
    this.#task = task;
    const { hostile, services } = task;
    const options: ApiOptions = { hostile, services };
    this.#api = fork(API, [JSON.stringify(options)], { execArgv: [], stdio: 'inherit' });
  }

  async url(): Promise<string> {
    const [message] = (await once(this.#api, 'message')) as [FromApi];
    if (message.kind !== 'listening') throw new Error('the API server did not begin');
    return message.url;
  }

  async around(wires: Wires): Promise<void> {
    const answer: AnswerTask = { kind: 'answer', addresses: [], port: ENDPOINT_PORT };
    const answerer = inside(wires.server.pid, ANSWERER, JSON.stringify(answer));
    this.#children.push(answerer);
    if (answerer.stdout) await once(answerer.stdout, 'data');
    for (const [name, target] of [['large', LARGE] as const, ['other', OTHER] as const]) {
      const task: WatchTask = target;
      const watcher = inside(wires.client.pid, WATCHER, JSON.stringify(task));
      lines(watcher, (line) => this.#reached[name].push(JSON.parse(line) as Reached));
      this.#children.push(watcher);
    }
    const asker = spawn(process.execPath, [LIVEZ_ASKER, LIVEZ], { stdio: ['ignore', 'pipe', 'inherit'] });
    lines(asker, (line) => {
      const [at = 0, ms = 0] = line.split(' ').map(Number);
      this.#livez.push({ at, ms });
    });
    this.#children.push(asker);
  }

  async forwards(service: Dialled, since: number, times: number): Promise<number | undefined> {
    const endpoint = probeEndpoint(service, times);
    for (let waited = 0; waited < PATIENCE_MS; waited += 20) {
      const found = this.#reached[service].find((each) => each.at >= since && each.endpoint === endpoint);
      if (found) return found.at - since;
      await sleep(20);
    }
    return undefined;
  }

  /** Does it; meanwhile and afterwards the other service changes. */
  async phase(name: Phase['name'], act: () => Promise<readonly (number | undefined)[]>): Promise<void> {
    const started = Date.now();
    let isOver = false;
    const others = this.#changeOther(() => isOver);
    const largeMs = await act();
    await sleep(REST_MS);
    isOver = true;
    const otherMs = await others;
    const since = name === 'restart' ? this.#restartedAt : started;
    const slowest = this.#livez.filter(({ at }) => at >= since).map(({ ms }) => ms);
    this.phases.push({ name, largeMs, otherMs, livezMs: Math.max(0, ...slowest) });
  }

  async #changeOther(isOver: () => boolean): Promise<readonly (number | undefined)[]> {
    const all: (number | undefined)[] = [];
    do {
      await sleep(100);
      const times = ++this.#otherTimes;
      const at = await this.ask({ kind: 'put', what: 'other', times });
      all.push(await this.forwards('other', at, times));
    } while (!isOver());
    return all;
  }

  /** The daemon has begun to follow. */
  async nextOther(since: number): Promise<void> {
    this.#restartedAt = since;
    await this.ask({ kind: 'put', what: 'other', times: ++this.#otherTimes });
    await this.otherForwards(since);
  }

  async change(): Promise<number | undefined> {
    const times = ++this.#largeTimes;
    const at = await this.ask({ kind: 'put', what: 'change', times });
    return this.forwards('large', at, times);
  }

  async create(): Promise<number | undefined> {
    this.#largeTimes = 0;
    const at = await this.ask({ kind: 'put', what: 'objects', times: 0 });
    return this.forwards('large', at, 0);
  }

  async remove(): Promise<void> {
    await this.ask({ kind: 'delete' });
  }

  /** The current endpoint of the other service is reached. */
  async otherForwards(since: number): Promise<void> {
    if ((await this.forwards('other', since, this.#otherTimes)) === undefined)
      throw new Error(`${this.#task.mode} with ${this.#task.hostile}: the other service is not served`);
  }

  forgetReached(): void {
    this.#reached.large.length = 0;
    this.#reached.other.length = 0;
  }

  async ask(message: ToApi): Promise<number> {
    const answered = once(this.#api, 'message') as Promise<[FromApi]>;
    this.#api.send(message);
    const [answer] = await answered;
    if (answer.kind !== 'done') throw new Error('an unexpected message');
    return answer.at;
  }

  close(): void {
    for (const child of this.#children) child.kill();
    if (this.#api.connected) this.#api.disconnect();
  }
}

async function main(task: HostileTask): Promise<HostileRun> {
  const folder = mkdtempSync(join(tmpdir(), 'junction-bench-'));
  const wires = await openWires(ENDPOINTS);
  const stage = new Stage(task);
  const daemons: Daemon[] = [];
  const start = (config: string): Daemon => {
    const daemon = new Daemon(config, task.profile);
    daemon.failed.catch((error: unknown) => {
      process.stderr.write(`${String(error)}\n`);
      process.exit(1);
    });
    daemons.push(daemon);
    return daemon;
  };
  try {
    const config = writeConfig(folder, await stage.url(), task.mode);
    await stage.around(wires);
    const first = start(config);
    await stage.otherForwards(first.startedAt);
    await sleep(REST_MS);
    await stage.phase('create', async () => [await stage.create()]);
    await stage.phase('change', async () => {
      const all: (number | undefined)[] = [];
      for (let change = 0; change < task.changes; change++) {
        all.push(await stage.change());
        await sleep(REST_MS / 2);
      }
      return all;
    });
    const resident = first.resident();
    await stage.phase('delete', async () => {
      await stage.remove();
      await sleep(REST_MS);
      return [];
    });
    await stage.create();
    await sleep(REST_MS);
    await first.end();
    stage.forgetReached();
    const second = start(config);
    await stage.nextOther(second.startedAt);
    await stage.phase('restart', async () => [await stage.change()]);
    const warnings = daemons.flatMap((daemon) => daemon.warnings);
    return { ...task, phases: stage.phases, resident, warnings };
  } finally {
    for (const daemon of daemons) await daemon.end();
    stage.close();
    wires.close();
    rmSync(folder, { recursive: true });
  }
}

function inside(pid: number, program: string, task: string): ChildProcess {
  const args = [`--net=/proc/${pid}/ns/net`, process.execPath, program, task];
  return spawn('nsenter', args, { stdio: ['ignore', 'pipe', 'inherit'] });
}

function lines(child: ChildProcess, take: (line: string) => void): void {
  if (child.stdout) createInterface({ input: child.stdout }).on('line', take);
}

const task = JSON.parse(process.argv[2] ?? '{}') as HostileTask;
process.stdout.write(`${JSON.stringify(await main(task))}\n`);
process.exit();
