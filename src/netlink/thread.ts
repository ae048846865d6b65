/**
 * Netlink off the main thread: one worker owns the sockets, so that neither a long batch nor the wait for notifications ever
 * holds up anything else. A worker that ends by itself is replaced; what it had to do has failed, and says so.
 */
import { isJunctionError, JunctionError } from '../errors.ts';
import { countFault } from '../faults.ts';
import { JobChannel, type NetlinkChannel, type RulesChannel } from './channel.ts';
import { type Message, NLMSG_OVERRUN, decodeMessages } from './codec.ts';
import type { MessageFilter } from './port.ts';
import { type Notification, WorkerHandle, type WorkerJob, stackOf } from './workerHandle.ts';

export interface WatchHandler {
  messages(messages: readonly Message[]): void;
  /** Some messages are missing: everything has to be read again. */
  lost(): void;
}

export interface Watch {
  /** Replaces the filter. Earlier notifications have been passed on when this is done. */
  setFilter(filter: MessageFilter): Promise<void>;
  close(): Promise<void>;
}

export interface WatchOptions {
  /**
   * Not what comes of this thread's own requests: of a long transaction there may be as much as was sent. The kernel
   * says whose a change of nf_tables was; of links it does not.
   */
  readonly othersOnly?: boolean;
  /** Messages that the kernel leaves out; with `othersOnly`, also what comes of this thread's own requests. */
  readonly filter?: MessageFilter | undefined;
}

interface ThreadOptions {
  /** How long to wait for an answer of the kernel. */
  readonly timeoutMs?: number;
}

interface OpenWatch {
  job: WorkerJob<'watch'>;
  readonly handler: WatchHandler;
  readonly losses: Losses;
}

const DEFAULT_TIMEOUT_MS = 5000;
/** Between two starts of a worker, so that one that always ends at once does not take a processor. */
const RESTART_PAUSE_MS = 1000;
const LOSS_PAUSE_MS = 1000;

export class NetlinkThread {
  readonly #timeoutMs: number;
  readonly #channels = new Map<number, RulesChannel>();
  readonly #watches = new Map<number, OpenWatch>();
  readonly #socketLost = new Map<number, () => void>();
  #worker: Promise<WorkerHandle> | undefined;
  #pause: { readonly timer: NodeJS.Timeout; readonly end: () => void } | undefined;
  #mayStartAt = 0;
  #lastWatch = 0;
  #isRestarting = false;
  #isClosed = false;

  static async start({ timeoutMs = DEFAULT_TIMEOUT_MS }: ThreadOptions = {}): Promise<NetlinkThread> {
    const thread = new NetlinkThread(timeoutMs);
    await thread.#connected();
    return thread;
  }

  private constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  /** Of one protocol there is one socket, and one channel. */
  channel(protocol: number): NetlinkChannel {
    return this.transactionChannel(protocol);
  }

  /** The same one. */
  transactionChannel(protocol: number): RulesChannel {
    const known = this.#channels.get(protocol);
    if (known) return known;
    const channel = new JobChannel(
      async ({ bytes, exchanges, take, reduced }) => {
        const worker = await this.#connected();
        try {
          const job = { kind: 'exchange', protocol, bytes, exchanges, reduction: reduced?.by } as const;
          await worker.perform(job, reduced?.take ?? ((part) => take(decodeMessages(part))));
        } catch (error) {
          this.#socketLost.get(protocol)?.();
          throw error;
        }
      },
      {
        lookUp: (lookups) => this.#ask({ kind: 'lookUp', protocol, lookups }),
        compare: (questions) => this.#ask({ kind: 'compare', protocol, questions }),
        scan: async (request, filter, take) => {
          const worker = await this.#connected();
          return (await worker.perform({ kind: 'scan', protocol, request, filter }, take)) ?? 0;
        },
      },
    );
    this.#channels.set(protocol, channel);
    return channel;
  }

  /** A job with one answer. */
  async #ask(job: WorkerJob<'lookUp'> | WorkerJob<'compare'>): Promise<Uint8Array> {
    const worker = await this.#connected();
    let answer = new Uint8Array();
    await worker.perform(job, (bytes) => {
      answer = bytes.slice();
    });
    return answer;
  }

  /** An exchange that fails ends its socket, and the next one has another; of each protocol one may be notified. */
  onSocketLost(protocol: number, notify: () => void): void {
    this.#socketLost.set(protocol, notify);
  }

  /** It does not keep the process alive. */
  async watch(
    protocol: number,
    groups: readonly number[],
    handler: WatchHandler,
    { othersOnly = false, filter }: WatchOptions = {},
  ): Promise<Watch> {
    const watch = ++this.#lastWatch;
    const worker = await this.#connected();
    const job = { kind: 'watch', watch, protocol, groups, othersOnly, filter } as const;
    this.#watches.set(watch, { job, handler, losses: new Losses(() => handler.lost()) });
    try {
      await worker.perform(job);
    } catch (error) {
      this.#watches.delete(watch);
      throw error;
    }
    return {
      setFilter: (replacement) => this.#setFilter(watch, replacement),
      close: () => this.#unwatch(watch),
    };
  }

  /** What is under way fails. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const { losses } of this.#watches.values()) losses.close();
    this.#watches.clear();
    this.#pause?.end();
    const worker = await this.#worker?.catch(() => undefined);
    await worker?.end();
  }

  async #setFilter(watch: number, filter: MessageFilter): Promise<void> {
    const open = this.#watches.get(watch);
    if (!open) return;
    open.job = { ...open.job, filter }; // a worker that takes over begins with it
    const worker = await this.#connected();
    await worker.perform({ kind: 'filter', watch, filter });
  }

  async #unwatch(watch: number): Promise<void> {
    this.#watches.get(watch)?.losses.close();
    if (!this.#watches.delete(watch) || this.#pause) return;
    const worker = await this.#worker?.catch(() => undefined);
    // If it fails, the worker has ended, and its sockets with it.
    await worker?.perform({ kind: 'unwatch', watch }).catch(() => undefined);
  }

  /** A caller that waits for it keeps the process alive. */
  async #connected(): Promise<WorkerHandle> {
    const worker = this.#startedWorker();
    this.#pause?.timer.ref();
    return worker;
  }

  #startedWorker(): Promise<WorkerHandle> {
    if (this.#isClosed) return Promise.reject(closedError());
    if (this.#worker) return this.#worker;
    const started = this.#startWorker();
    this.#worker = started;
    started.catch(() => {
      if (this.#worker === started) this.#worker = undefined;
    });
    return started;
  }

  async #startWorker(): Promise<WorkerHandle> {
    await this.#waitToStart();
    if (this.#isClosed) throw closedError();
    this.#mayStartAt = performance.now() + RESTART_PAUSE_MS;
    const worker = await WorkerHandle.start({
      timeoutMs: this.#timeoutMs,
      onNotification: (notification) => this.#passOn(notification),
      onCrash: () => void this.#crashed(),
    });
    await this.#watchAgain(worker);
    return worker;
  }

  #waitToStart(): Promise<void> {
    const milliseconds = this.#mayStartAt - performance.now();
    if (milliseconds <= 0) return Promise.resolve();
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(this.#pause?.timer);
        this.#pause = undefined;
        resolve();
      };
      this.#pause = { timer: setTimeout(end, milliseconds).unref(), end };
    });
  }

  async #watchAgain(worker: WorkerHandle): Promise<void> {
    try {
      for (const { job, losses } of this.#watches.values()) {
        await worker.perform(job);
        losses.note();
      }
    } catch (error) {
      await worker.end();
      throw error;
    }
  }

  /** Nobody uses the thread while it only listens, so it has to see to itself. */
  async #crashed(): Promise<void> {
    this.#worker = undefined;
    if (this.#isRestarting) return;
    this.#isRestarting = true;
    while (!this.#worker && this.#watches.size > 0 && !this.#isClosed) {
      // Each start waits for its time, and the next one notifies the watchers.
      await this.#startedWorker().catch(() => undefined);
    }
    this.#isRestarting = false;
  }

  #passOn(notification: Notification): void {
    const watch = this.#watches.get(notification.watch);
    if (!watch) return;
    const { handler, losses } = watch;
    if (notification.kind === 'lost') {
      losses.note();
      return;
    }
    try {
      const messages = decodeMessages(notification.bytes);
      handler.messages(messages);
      if (!messages.some(({ type }) => type === NLMSG_OVERRUN)) return;
      countFault('netlink_overrun', 'the kernel says so');
    } catch (error) {
      // Nothing that the kernel says may end the process, or stop what it says next from being heard.
      const isMalformed = isJunctionError(error, 'NETLINK_MALFORMED');
      countFault('netlink_malformed', isMalformed ? error.message : stackOf(error));
    }
    losses.note();
  }
}

function closedError(): JunctionError {
  return new JunctionError('NETLINK_FAILED', 'netlink: its thread was closed');
}

/**
 * Notifications that are missing or unreadable, for one watcher. It reads everything again, which is a lot of work: at
 * once for the first loss, and for those that follow it at most once a second, the last of them included.
 */
class Losses {
  readonly #notify: () => void;
  #pause: NodeJS.Timeout | undefined;
  #hasMore = false;

  constructor(notify: () => void) {
    this.#notify = notify;
  }

  note(): void {
    this.#hasMore = this.#pause !== undefined;
    if (this.#hasMore) return;
    this.#pause = setTimeout(() => {
      this.#pause = undefined;
      if (this.#hasMore) this.note();
    }, LOSS_PAUSE_MS).unref();
    this.#notify();
  }

  close(): void {
    clearTimeout(this.#pause);
  }
}
