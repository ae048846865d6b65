/** The main thread's end of one worker: jobs that wait for their answers, and a worker that can always be ended. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { JunctionError } from '../errors.ts';
import { countFault } from '../faults.ts';
import { libc } from '../system/libc.ts';
import { netlinkFailed } from './port.ts';
import type { FromWorker, ToWorker, WorkerSettings } from './worker/messages.ts';

const EFD_CLOEXEC = 0o2000000;
const EFD_NONBLOCK = 0o4000;
/** One for each protocol, and one for each watch. */
const MOST_SOCKETS = 64;
/** How long a worker may take to end before it is ended. It needs a millisecond. */
const END_GRACE_MS = 2000;

/** A message without the number of the job, which is given here. */
export type WorkerJob<Kind extends ToWorker['kind']> = Omit<Extract<ToWorker, { readonly kind: Kind }>, 'id'>;
type AnyJob = { readonly [Kind in ToWorker['kind']]: WorkerJob<Kind> }[ToWorker['kind']];
export type Notification = Extract<FromWorker, { readonly kind: 'notified' | 'lost' }>;

interface HandleOptions {
  readonly timeoutMs: number;
  readonly onNotification: (notification: Notification) => void;
  /** It was at work, and ended of its own accord: everything that it had to do has failed. */
  readonly onCrash: () => void;
}

interface Waiting {
  take(bytes: Uint8Array): void;
  resolve(examined?: number): void;
  reject(error: unknown): void;
}

export class WorkerHandle {
  readonly #options: HandleOptions;
  readonly #wake = openEvent();
  readonly #stop = openEvent();
  readonly #sockets = new Int32Array(new SharedArrayBuffer(MOST_SOCKETS * Int32Array.BYTES_PER_ELEMENT));
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  /** Node waits for its workers when it exits, and cannot wake one that is inside `poll`. */
  readonly #endWithProcess = (): void => signal(this.#stop);
  #lastId = 0;
  #state: 'starts' | 'runs' | 'ends' | 'ended' = 'starts';
  #uncaught: unknown;

  /** Resolves when the worker has taken up its work. */
  static async start(options: HandleOptions): Promise<WorkerHandle> {
    const handle = new WorkerHandle(await (program ??= findOrCompile()), options);
    await new Promise<void>((resolve, reject) => {
      handle.#wait(0, { take: () => undefined, resolve: () => resolve(), reject });
    });
    return handle;
  }

  private constructor(worker: WorkerProgram, options: HandleOptions) {
    this.#options = options;
    const settings: WorkerSettings = {
      wake: this.#wake,
      stop: this.#stop,
      timeoutMs: options.timeoutMs,
      sockets: this.#sockets,
    };
    this.#worker = new Worker(worker, {
      eval: typeof worker === 'string',
      workerData: settings,
      // The options that this process was started with may name loaders, which are of no use to a bundle.
      execArgv: [],
      name: 'netlink',
    });
    // First, because one that throws keeps the later ones from being called.
    process.prependListener('exit', this.#endWithProcess);
    this.#worker.on('message', (message: FromWorker) => this.#receive(message));
    this.#worker.on('error', (error: unknown) => (this.#uncaught = error));
    this.#worker.on('exit', () => this.#ended());
  }

  /**
   * Resolves when the job is done; after a scan, with how many objects its filter looked at. `take` is given the answers
   * while they come.
   */
  perform(job: AnyJob, take: (bytes: Uint8Array) => void = () => undefined): Promise<number | undefined> {
    if (this.#state !== 'runs') return Promise.reject(this.#goneError());
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      this.#wait(id, { take, resolve, reject });
      this.#worker.postMessage(
        { ...job, id },
        job.kind === 'exchange' ? [job.bytes.buffer as ArrayBuffer] : [],
      );
      signal(this.#wake);
    });
  }

  async end(): Promise<void> {
    if (this.#state === 'ended') return;
    const exit = new Promise<void>((resolve) => this.#worker.once('exit', () => resolve()));
    this.#state = 'ends';
    signal(this.#stop);
    this.#rejectAll();
    const timer = setTimeout(() => void this.#worker.terminate(), END_GRACE_MS);
    this.#worker.ref();
    await exit;
    clearTimeout(timer);
  }

  /** The worker keeps the process alive only while a job is under way. */
  #wait(id: number, waiting: Waiting): void {
    this.#waiting.set(id, waiting);
    this.#worker.ref();
  }

  #receive(message: FromWorker): void {
    switch (message.kind) {
      case 'notified':
      case 'lost':
        if (this.#state === 'runs') this.#options.onNotification(message);
        return;
      case 'part':
        this.#take(message.id, message.bytes);
        return;
      case 'ready':
        if (this.#state === 'starts') this.#state = 'runs';
        this.#finish(0)?.resolve();
        return;
      case 'done':
        this.#finish(message.id)?.resolve(message.examined);
        return;
      case 'failed':
        this.#finish(message.id)?.reject(new JunctionError(message.code, message.message));
        return;
      case 'fault':
        countFault(message.fault, message.detail, message.times);
    }
  }

  #take(id: number, bytes: Uint8Array): void {
    try {
      this.#waiting.get(id)?.take(bytes);
    } catch (error) {
      this.#finish(id)?.reject(error);
    }
  }

  #finish(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (this.#waiting.size === 0 && this.#state === 'runs') this.#worker.unref();
    return waiting;
  }

  #ended(): void {
    const crashed = this.#state === 'runs';
    this.#state = 'ended';
    process.off('exit', this.#endWithProcess);
    // What the kernel keeps for a socket, such as a table that it owns, must not outlive the thread.
    const leftOpen = [...this.#sockets].filter((each) => each > 0).map((each) => each - 1);
    for (const descriptor of [this.#wake, this.#stop, ...leftOpen]) libc().close(descriptor);
    this.#rejectAll();
    if (!crashed) return;
    const error = this.#uncaught;
    countFault('netlink_thread_crashed', error === undefined ? 'without an error' : stackOf(error));
    this.#options.onCrash();
  }

  #rejectAll(): void {
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const each of waiting) each.reject(this.#goneError());
  }

  #goneError(): JunctionError {
    return new JunctionError('NETLINK_FAILED', 'netlink: its thread has ended', { cause: this.#uncaught });
  }
}

function openEvent(): number {
  const { eventfd, errno } = libc();
  const descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (descriptor < 0) throw netlinkFailed('cannot open an event descriptor', errno());
  return descriptor;
}

function signal(descriptor: number): void {
  const one = new Uint8Array(new BigUint64Array([1n]).buffer);
  libc().write(descriptor, one, one.length);
}

export function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** The last is what bundles of single tests have, which are no package of modules. */
const BUILT = ['./netlink-worker.js', '../netlink-worker.js', './netlink-worker.mjs'];
const SOURCE = './worker/main.ts';

/** A file, or text in CommonJS: the only kind of module that a worker takes as text. */
type WorkerProgram = URL | string;

/** Beside the bundle that the build made, or in the sources, to be compiled now. */
let program: Promise<WorkerProgram> | undefined;

async function findOrCompile(): Promise<WorkerProgram> {
  const url = BUILT.map((path) => new URL(path, import.meta.url)).find((each) => existsSync(each));
  if (url) return url;
  const { build } = await import('esbuild');
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL(SOURCE, import.meta.url))],
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'cjs',
    external: ['koffi'],
    // Text has no place of its own from which koffi could be found.
    define: { 'import.meta.url': JSON.stringify(import.meta.url) },
    write: false,
    logLevel: 'silent',
  });
  return outputFiles[0]?.text ?? '';
}
