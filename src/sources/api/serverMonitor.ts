/**
 * Finds out when an API server that was away is back, once for all resources.
 *
 * A resource that waits in its back-off learns of the return only when its step ends, up to 30 s later. So while any
 * request has failed, one small request (`/readyz`) goes out every second or two. Nothing is sent while all is well.
 */
import type { Clock } from '../../time/clock.ts';
import { wait } from '../../time/wait.ts';

/**
 * ready: it serves. notReady: something answers, but does not serve yet: informers and roles are being loaded, a load
 * balancer has no backend, the credentials are not known yet. noAnswer: refused, or no status in time.
 */
export type ProbeResult = 'ready' | 'notReady' | 'noAnswer';

interface ServerMonitorOptions {
  readonly clock: Clock;
  /** From 0 to 1. */
  readonly random: () => number;
  /** Sends the small request. It must end within `PROBE_TIMEOUT_MS`; it never throws. */
  readonly probe: (signal: AbortSignal) => Promise<ProbeResult>;
}

export interface Waiter {
  /** The server answers again, or is ready again. */
  onReturn(): void;
}

/** A request on a connection that was accepted and then forgotten must not keep the next from being sent. */
export const PROBE_TIMEOUT_MS = 4000;
const FIRST_PROBE_MS = 500;
const LEAST_PAUSE_MS = 1000;
const MOST_PAUSE_MS = 2000;
/**
 * A list that follows a failure waits up to this long, by chance: when a server returns, the nodes of a cluster notice
 * it within two seconds of each other, and their lists are spread over two seconds more.
 */
export const LIST_SPREAD_MS = 2000;
/** An overloaded server, or one backend of several that is dead, looks like many returns. */
const LEAST_BETWEEN_RETURNS_MS = 10_000;

export class ServerMonitor {
  /** Whether streaming lists are worth asking for; a server that returns may be a newer one. */
  streamsLists = true;
  readonly #options: ServerMonitorOptions;
  readonly #waiters = new Set<Waiter>();
  readonly #suspects = new Set<Waiter>();
  /** unknown: there was no probe since the last failure. */
  #state: ProbeResult | 'unknown' = 'unknown';
  #probing: AbortController | undefined;
  #sent = 0;
  #newestResult = 0;
  readonly #lastReturn = { answers: Number.NEGATIVE_INFINITY, ready: Number.NEGATIVE_INFINITY };

  constructor(options: ServerMonitorOptions) {
    this.#options = options;
  }

  /** The last probe found no server, or one that does not serve. */
  get isAway(): boolean {
    return this.#state === 'noAnswer' || this.#state === 'notReady';
  }

  add(waiter: Waiter): void {
    this.#waiters.add(waiter);
  }

  /** A request of this one has failed. */
  suspect(waiter: Waiter): void {
    this.#suspects.add(waiter);
    if (this.#probing) return;
    this.#state = 'unknown';
    this.#probing = new AbortController();
    void this.#probe(this.#probing.signal);
  }

  /** A request of this one got what it asked for: the others need not wait. */
  served(waiter: Waiter): void {
    this.#suspects.delete(waiter);
    if (this.isAway) this.#note('ready');
    if (this.#suspects.size === 0) this.stop();
  }

  stop(): void {
    this.#probing?.abort();
    this.#probing = undefined;
    this.#suspects.clear();
    this.#state = 'unknown';
  }

  /** Each request is sent in its time, whether or not the one before has been answered. */
  async #probe(stop: AbortSignal): Promise<void> {
    const { clock, random, probe } = this.#options;
    await wait(clock, FIRST_PROBE_MS * random(), stop);
    while (!stop.aborted) {
      const number = ++this.#sent;
      void probe(stop).then((result) => {
        if (stop.aborted || number < this.#newestResult) return;
        this.#newestResult = number;
        this.#note(result);
      });
      await wait(clock, LEAST_PAUSE_MS + (MOST_PAUSE_MS - LEAST_PAUSE_MS) * random(), stop);
    }
  }

  #note(result: ProbeResult): void {
    const was = this.#state;
    const isReturn = (result === 'ready' && this.isAway) || (result === 'notReady' && was === 'noAnswer');
    if (isReturn && !this.#mayReturn(result === 'ready' ? 'ready' : 'answers')) return;
    this.#state = result;
    if (result === 'ready') {
      this.#probing?.abort();
      this.#probing = undefined;
    }
    if (!isReturn) return;
    this.streamsLists = true;
    for (const waiter of this.#waiters) waiter.onReturn();
  }

  /** If not now, the next probe asks again. */
  #mayReturn(how: 'answers' | 'ready'): boolean {
    const now = this.#options.clock.now();
    if (now - this.#lastReturn[how] < LEAST_BETWEEN_RETURNS_MS) return false;
    this.#lastReturn[how] = now;
    return true;
  }
}
