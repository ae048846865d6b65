/**
 * The thread that owns the sockets. It runs no event loop: it waits in `poll` for work, for notifications from the
 * kernel, and for its end, all at once.
 */
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { isJunctionError } from '../../errors.ts';
import { countFault, type FaultName, onFault } from '../../faults.ts';
import { libc } from '../../system/libc.ts';
import { Parts, exchange, isAllFrom } from '../exchange.ts';
import { type Reduction, reducerOf } from '../reduction.ts';
import { compareChains } from './compareRules.ts';
import { Garbage, REST_MS } from './garbage.ts';
import { lookUpAll } from './lookUp.ts';
import type { FromWorker, ToWorker, WorkerSettings } from './messages.ts';
import { scanTable } from './scan.ts';
import { AnswersLost, KernelPort, type MessageFilter, type PortOptions, PortStopped, poll } from '../port.ts';

/** So many datagrams of one watch, and then it is the others' turn. */
const DATAGRAMS_PER_TURN = 256;
/** So many datagrams of rules, some 0.5 ms of them, and then it is the turn of other jobs. */
const DATAGRAMS_PER_LOOK = 32;
/** An exchange that fails ends its socket. */
const MOST_NAMES = 4;
const EVENTFD_BYTES = 8;
/**
 * Nothing depends on waking up for nothing, but that a process ends whose exit listeners were not called: Node waits
 * for this thread then, and it does not know. So rarely, it uses no processor that anybody could measure.
 */
const IDLE_MS = 30_000;

/** Returns when it is stopped. */
function serve(main: MessagePort, settings: WorkerSettings): void {
  const sockets = new Sockets(main, settings);
  const faults = new Map<FaultName, { readonly times: number; readonly detail: string }>();
  onFault((fault, detail, times) => {
    faults.set(fault, { times: (faults.get(fault)?.times ?? 0) + times, detail });
  });
  const garbage = new Garbage();
  try {
    say(main, { kind: 'ready' });
    for (;;) {
      // One message for each kind and turn: whoever floods a socket must not flood the thread.
      for (const [fault, { times, detail }] of faults) say(main, { kind: 'fault', fault, detail, times });
      faults.clear();
      const job = sockets.next();
      // A job that is posted from here on is followed by a write to `wake`, so waiting ends.
      if (job) sockets.work(job);
      else if (!sockets.goOn()) {
        const isAwake = sockets.listen(garbage.mayBeDue ? REST_MS : IDLE_MS);
        if (!isAwake && garbage.mayBeDue) garbage.rested();
        if (!isAwake) continue;
      }
      garbage.worked();
    }
  } catch (error) {
    if (!(error instanceof PortStopped)) throw error;
  } finally {
    sockets.close();
  }
}

type ScanJob = Extract<ToWorker, { readonly kind: 'scan' }>;
type ExchangeJob = Extract<ToWorker, { readonly kind: 'exchange' }>;
type WatchJob = Extract<ToWorker, { readonly kind: 'watch' }>;
interface UnderWay {
  readonly id: number;
  readonly port: KernelPort;
  readonly steps: Generator<void, number>;
}
type Listener = Pick<WatchJob, 'protocol' | 'othersOnly' | 'filter'> & { readonly port: KernelPort };

class Sockets {
  readonly #main: MessagePort;
  readonly #settings: WorkerSettings;
  readonly #requests = new Map<number, KernelPort>();
  /** Those that rules are reduced from: a long dump does not keep others from being sent meanwhile. */
  readonly #readers = new Map<number, KernelPort>();
  readonly #postponed: ToWorker[] = [];
  /** By protocol, what the kernel calls the socket for requests, and those before it, whose notifications may be on their way. */
  readonly #names = new Map<number, readonly number[]>();
  readonly #watches = new Map<number, Listener>();
  #scans: readonly UnderWay[] = [];

  constructor(main: MessagePort, settings: WorkerSettings) {
    this.#main = main;
    this.#settings = settings;
  }

  /** Waits for whatever is next, and passes notifications on. False: nothing came. Throws when it is time to end. */
  listen(timeoutMs: number): boolean {
    const { wake, stop } = this.#settings;
    const watched = [...this.#watches.values()].map(({ port }) => port.descriptor);
    const ready = poll([stop, wake, ...watched], timeoutMs);
    if (ready.has(stop)) throw new PortStopped();
    if (ready.has(wake)) libc().read(wake, new Uint8Array(EVENTFD_BYTES), EVENTFD_BYTES);
    for (const [watch, listener] of this.#watches)
      if (ready.has(listener.port.descriptor)) this.#receive(watch, listener);
    return ready.size > 0;
  }

  next(): ToWorker | undefined {
    return this.#postponed.shift() ?? this.#received();
  }

  #received(): ToWorker | undefined {
    return receiveMessageOnPort(this.#main)?.message as ToWorker | undefined;
  }

  work(job: ToWorker): void {
    try {
      if (job.kind === 'scan') {
        this.#begin(job);
        return;
      }
      this.#perform(job);
      say(this.#main, { kind: 'done', id: job.id });
    } catch (error) {
      this.#failed(job.id, error);
    }
  }

  /** A datagram of one scan; the next time it is another's turn. False: there is none. */
  goOn(): boolean {
    const [current, ...others] = this.#scans;
    if (!current) return false;
    const { id, port, steps } = current;
    this.listen(0);
    try {
      const step = steps.next();
      this.#scans = step.done ? others : [...others, current];
      if (!step.done) return true;
      say(this.#main, { kind: 'done', id, examined: step.value });
    } catch (error) {
      this.#failed(id, error);
      this.#scans = others;
    }
    this.#close(port);
    return true;
  }

  #begin({ id, protocol, request, filter }: ScanJob): void {
    const { timeoutMs, stop } = this.#settings;
    const port = this.#open(protocol, { timeoutMs, stop });
    const emit = (bytes: Uint8Array<ArrayBuffer>): void =>
      say(this.#main, { kind: 'part', id, bytes }, bytes);
    this.#scans = [...this.#scans, { id, port, steps: scanTable(port, request, filter, emit) }];
  }

  #failed(id: number, error: unknown): void {
    if (!isJunctionError(error)) throw error;
    say(this.#main, { kind: 'failed', id, code: error.code, message: error.message });
  }

  close(): void {
    for (const { port } of this.#scans) this.#close(port);
    for (const port of [...this.#requests.values(), ...this.#readers.values()]) this.#close(port);
    for (const { port } of this.#watches.values()) this.#close(port);
  }

  /** Noted down, because a thread that is ended from outside closes nothing. */
  #open(protocol: number, options?: PortOptions): KernelPort {
    const port = KernelPort.open(protocol, options);
    const { sockets } = this.#settings;
    sockets[sockets.indexOf(0)] = port.descriptor + 1;
    return port;
  }

  /** Struck out before it is closed: from then on its number may be anybody's. */
  #close(port: KernelPort): void {
    const { sockets } = this.#settings;
    const place = sockets.indexOf(port.descriptor + 1);
    if (place >= 0) sockets[place] = 0;
    port.close();
  }

  #perform(job: Exclude<ToWorker, ScanJob>): void {
    switch (job.kind) {
      case 'exchange':
        if (job.reduction) this.#reduce(job, job.reduction);
        else this.#exchange(job);
        return;
      case 'lookUp':
        this.#lookUp(job);
        return;
      case 'compare':
        this.#compare(job);
        return;
      case 'watch': {
        const port = this.#open(job.protocol);
        this.#watches.set(job.watch, { ...job, port });
        try {
          this.#filter(job.watch, job.filter);
          for (const group of job.groups) port.join(group);
        } catch (error) {
          this.#unwatch(job.watch);
          throw error;
        }
        return;
      }
      case 'filter': {
        const listener = this.#watches.get(job.watch);
        if (!listener) return;
        this.#filter(job.watch, job.filter);
        this.#receive(job.watch, listener);
        return;
      }
      case 'unwatch':
        this.#unwatch(job.watch);
    }
  }

  #exchange(job: ExchangeJob): void {
    const { id, protocol, bytes, exchanges } = job;
    const parts = new Parts((part) => say(this.#main, { kind: 'part', id, bytes: part }, part));
    // Our own changes cause notifications too, and a socket without the rights to a larger buffer holds those of one datagram.
    const listen = (): boolean => this.listen(0);
    this.#withPort(this.#requests, protocol, (port) => {
      for (const datagram of exchange(port, bytes, exchanges, listen)) parts.add(datagram);
      parts.flush();
    });
  }

  #reduce({ id, protocol, bytes, exchanges }: ExchangeJob, reduction: Reduction): void {
    const reducer = reducerOf(reduction);
    this.#withPort(this.#readers, protocol, (port) => {
      let count = 0;
      for (const datagram of exchange(port, bytes, exchanges)) {
        reducer.add(datagram);
        if (reduction === 'rules' && ++count % DATAGRAMS_PER_LOOK === 0) this.#letOthersPass();
      }
    });
    const reduced = reducer.finish();
    say(this.#main, { kind: 'part', id, bytes: reduced }, reduced);
  }

  #compare({ id, protocol, questions }: Extract<ToWorker, { readonly kind: 'compare' }>): void {
    this.#withPort(this.#readers, protocol, (port) => {
      const bytes = compareChains(port, questions, () => this.#letOthersPass());
      say(this.#main, { kind: 'part', id, bytes }, bytes);
    });
  }

  /** A commit does not wait for the rules of a chain of 10,000, which take 80 ms. */
  #letOthersPass(): void {
    for (let job = this.#received(); job; job = this.#received())
      if (job.kind === 'compare' || (job.kind === 'exchange' && job.reduction)) this.#postponed.push(job);
      else this.work(job);
  }

  #withPort(ports: Map<number, KernelPort>, protocol: number, use: (port: KernelPort) => void): void {
    const { timeoutMs, stop } = this.#settings;
    let port = ports.get(protocol);
    if (!port) {
      port = this.#open(protocol, { timeoutMs, stop });
      ports.set(protocol, port);
      if (ports === this.#requests) this.#nameOwn(protocol, port.name);
    }
    try {
      use(port);
    } catch (error) {
      // Its answers may still come, or its dump go on, which lets no other begin: the next job has a new socket.
      this.#close(port);
      ports.delete(protocol);
      throw error;
    }
  }

  #lookUp({ id, protocol, lookups }: Extract<ToWorker, { readonly kind: 'lookUp' }>): void {
    const { timeoutMs, stop } = this.#settings;
    const port = this.#open(protocol, { timeoutMs, stop });
    try {
      const bytes = lookUpAll(port, lookups, () => this.listen(0));
      say(this.#main, { kind: 'part', id, bytes }, bytes);
    } finally {
      this.#close(port);
    }
  }

  /** Before its first message is sent. */
  #nameOwn(protocol: number, name: number): void {
    this.#names.set(protocol, [name, ...(this.#names.get(protocol) ?? [])].slice(0, MOST_NAMES));
    for (const [watch, { filter, ...listener }] of this.#watches)
      if (listener.protocol === protocol) this.#filter(watch, filter);
  }

  /** Inside the kernel, also of this thread's own requests. */
  #filter(watch: number, filter: MessageFilter | undefined): void {
    const listener = this.#watches.get(watch);
    if (!listener || !filter) return;
    this.#watches.set(watch, { ...listener, filter });
    const own = listener.othersOnly ? (this.#names.get(listener.protocol) ?? []) : [];
    listener.port.setFilter({ ...filter, notFrom: [...filter.notFrom, ...own] });
  }

  #unwatch(watch: number): void {
    const listener = this.#watches.get(watch);
    if (listener) this.#close(listener.port);
    this.#watches.delete(watch);
  }

  #receive(watch: number, { port, protocol, othersOnly }: Listener): void {
    const parts = new Parts((bytes) => say(this.#main, { kind: 'notified', watch, bytes }, bytes));
    try {
      for (let count = 0; count < DATAGRAMS_PER_TURN; count++) {
        const datagram = port.take();
        if (!datagram) break;
        const [name, ...before] = this.#names.get(protocol) ?? [];
        const isOwn = isAllFrom(datagram, name) || before.some((each) => isAllFrom(datagram, each)); // throws at what is no message
        if (!othersOnly || !isOwn) parts.add(datagram);
      }
      parts.flush();
    } catch (error) {
      // What cannot be read is as good as lost.
      const isMalformed = isJunctionError(error, 'NETLINK_MALFORMED');
      if (!(error instanceof AnswersLost) && !isMalformed) throw error;
      countFault(isMalformed ? 'netlink_malformed' : 'netlink_overrun', error.message);
      parts.flush();
      drain(port);
      say(this.#main, { kind: 'lost', watch });
    }
  }
}

const MOST_DRAINED = 100_000;

/**
 * A socket that overflowed gets nothing more until it is empty, and no second error says so. Whoever is notified of the loss
 * reads everything afterwards, so what is still in it need not be passed on.
 */
function drain(port: KernelPort): void {
  for (let count = 0; count < MOST_DRAINED; count++) {
    try {
      if (!port.take()) return;
    } catch (error) {
      if (!(error instanceof AnswersLost)) throw error;
    }
  }
}

function say(main: MessagePort, message: FromWorker, bytes?: Uint8Array<ArrayBuffer>): void {
  main.postMessage(message, bytes ? [bytes.buffer] : []);
}

if (!parentPort) throw new Error('this program runs in a worker thread');
serve(parentPort, workerData as WorkerSettings);
