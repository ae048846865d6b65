/** What is around a proxy in the network namespace of this process: an API server, a client and endpoints on wires. */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import {
  type AnswerTask,
  type ApiOptions,
  type FromApi,
  PROBE,
  type Reached,
  type Replaced,
  type Sizes,
  type ToApi,
  type WatchTask,
} from './messages.ts';
import { openWires, type Wires } from './wires.ts';

const API = fileURLToPath(new URL('bench-nftables-api.js', import.meta.url));
const ANSWERER = fileURLToPath(new URL('bench-nftables-node.js', import.meta.url));
const WATCHER = fileURLToPath(new URL('bench-nftables-watcher.js', import.meta.url));
/** Where the generated endpoints are. */
const ENDPOINTS = '10.128.0.0/9';
const SHARED_MEMORY = '/dev/shm';

export class ProxyEnvironment {
  /** In memory, as /run is. */
  readonly folder = mkdtempSync(
    join(existsSync(SHARED_MEMORY) ? SHARED_MEMORY : tmpdir(), 'junction-bench-'),
  );
  readonly #wires: Wires;
  readonly #api: ChildProcess;
  readonly #children: ChildProcess[] = [];
  #url = '';

  static async open(sizes: Sizes): Promise<ProxyEnvironment> {
    const environment = new ProxyEnvironment(await openWires(ENDPOINTS), sizes);
    environment.#url = (await environment.#told('listening')).url;
    await environment.#answer();
    return environment;
  }

  private constructor(wires: Wires, sizes: Sizes) {
    this.#wires = wires;
    this.#api = fork(API, [JSON.stringify({ sizes } satisfies ApiOptions)], { execArgv: [] });
  }

  /** Of the API server. */
  get url(): string {
    return this.#url;
  }

  /** The service that is dialled has another endpoint from now on. Returns when it was written. */
  async replace(endpoint: string): Promise<Replaced> {
    const replaced = this.#told('replaced');
    this.#api.send({ kind: 'replace', endpoint } satisfies ToApi);
    return replaced;
  }

  /** A client that dials the service until it is ended. */
  dial(): Dialler {
    return new Dialler(this.#inside(this.#wires.client.pid, WATCHER, PROBE satisfies WatchTask));
  }

  close(): void {
    for (const child of this.#children) child.kill();
    if (this.#api.connected) this.#api.disconnect();
    this.#wires.close();
    rmSync(this.folder, { recursive: true });
  }

  async #answer(): Promise<void> {
    const task: AnswerTask = { kind: 'answer', addresses: [], port: PROBE.endpointPort };
    const answerer = this.#inside(this.#wires.server.pid, ANSWERER, task);
    if (answerer.stdout) await once(answerer.stdout, 'data');
  }

  #inside(pid: number, program: string, task: object): ChildProcess {
    const args = [`--net=/proc/${pid}/ns/net`, process.execPath, program, JSON.stringify(task)];
    const child = spawn('nsenter', args, { stdio: ['ignore', 'pipe', 'inherit'] });
    this.#children.push(child);
    return child;
  }

  #told<Kind extends FromApi['kind']>(kind: Kind): Promise<Extract<FromApi, { readonly kind: Kind }>> {
    return new Promise((resolve, reject) => {
      this.#api.once('exit', () => reject(new Error('the API server has ended')));
      this.#api.on('message', (message: Extract<FromApi, { readonly kind: Kind }>) => {
        if (message.kind === kind) resolve(message);
      });
    });
  }
}

export class Dialler {
  readonly #process: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  constructor(watcher: ChildProcess) {
    this.#process = watcher;
    if (!watcher.stdout) throw new Error('a program without output');
    this.#lines = createInterface({ input: watcher.stdout })[Symbol.asyncIterator]();
  }

  /** The first connection that reached this endpoint. */
  async reached(endpoint: string): Promise<Reached> {
    for (;;) {
      const { value, done } = await this.#lines.next();
      if (done) throw new Error('the client has ended');
      const reached = JSON.parse(value) as Reached;
      if (reached.endpoint === endpoint) return reached;
    }
  }

  end(): void {
    this.#process.kill();
  }
}
