/** Sends one request after the other, again and again where that helps, and never more than one at a time. */
import type { Log } from '../../log/log.ts';
import type { Clock } from '../../time/clock.ts';
import { wait } from '../../time/wait.ts';

export interface EventRequest {
  readonly method: 'POST' | 'PATCH';
  readonly path: string;
  readonly contentType: string;
  /** To be sent as JSON. */
  readonly body: unknown;
}

/** Rejects when there was no answer at all. */
export type SendEvent = (request: EventRequest, signal: AbortSignal) => Promise<{ readonly status: number }>;

export interface Delivery {
  readonly reason: string;
  /** Asked for at each attempt, so that what is sent is the newest. */
  readonly request: () => EventRequest;
  /** What to send instead when the object is not there. */
  readonly whenGone?: () => Delivery;
}

export interface EndLimits {
  /** For everything that waits to be sent. */
  readonly deadlineMs: number;
  /** For each answer. */
  readonly answerMs: number;
}

interface SenderOptions {
  readonly clock: Clock;
  readonly log?: Pick<Log, 'warn' | 'verbose'> | undefined;
  readonly random: () => number;
}

const TIMEOUT_MS = 10_000;
const FIRST_RETRY_MS = 1000;
const LAST_RETRY_MS = 60_000;
const ATTEMPTS = 12;
const REFUSED_HINT =
  'allow this service account to create, patch and update events in the group events.k8s.io';

type Verdict = 'done' | 'gone' | 'refused' | 'again';

export class EventSender {
  readonly #options: SenderOptions;
  /** The first is under way. */
  readonly queue: Delivery[] = [];
  sent = 0;
  failed = 0;
  readonly #loggedStatuses = new Set<number>();
  #send: SendEvent | undefined;
  #working: Promise<void> | undefined;
  /** Set once it ends: no attempt is repeated any more. */
  #endLimits: EndLimits | undefined;
  #ended = false;
  #interrupt: (() => void) | undefined;

  constructor(options: SenderOptions) {
    this.#options = options;
  }

  add(delivery: Delivery): void {
    this.queue.push(delivery);
    this.#wake();
  }

  start(send: SendEvent): void {
    this.#send = send;
    this.#wake();
  }

  /**
   * Continues until nothing waits, the time is over, or the API server does not answer; returns how many were left.
   * Without this, each end without an API server took the whole time.
   */
  async stop(limits: EndLimits): Promise<number> {
    this.#endLimits = limits;
    const cancel = this.#options.clock.schedule(limits.deadlineMs, () => this.#end());
    this.#interrupt?.(); // a pause between attempts is over now
    if (!this.#send) this.#end();
    await this.#working;
    cancel();
    this.#ended = true;
    return this.queue.length;
  }

  #end(): void {
    this.#ended = true;
    this.#interrupt?.();
  }

  #wake(): void {
    const send = this.#send;
    if (!send || this.#working || this.#ended || this.queue.length === 0) return;
    this.#working = this.#work(send);
  }

  async #work(send: SendEvent): Promise<void> {
    await Promise.resolve(); // the caller of add does not wait for the request to be built
    for (let next = this.queue[0]; next && !this.#ended; next = this.queue[0])
      if (await this.#deliver(send, next)) this.queue.shift();
    this.#working = undefined;
  }

  /** Returns `false` when time ran out. */
  async #deliver(send: SendEvent, delivery: Delivery): Promise<boolean> {
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const verdict = await this.#attempt(send, delivery);
      if (verdict === 'done') {
        this.sent += 1;
        return true;
      }
      if (verdict === 'gone' && delivery.whenGone) return this.#deliver(send, delivery.whenGone());
      if (verdict !== 'again') break;
      if (this.#endLimits) this.#ended = true;
      if (!this.#ended && attempt < ATTEMPTS) await this.#pause(attempt);
      if (this.#ended) return false;
    }
    this.failed += 1;
    return true;
  }

  async #attempt(send: SendEvent, delivery: Delivery): Promise<Verdict> {
    const { clock, log } = this.#options;
    const stopper = new AbortController();
    const abandoned = new Promise<never>((_, reject) => {
      stopper.signal.addEventListener('abort', () => reject(new Error('no answer in time')), { once: true });
    });
    const startedAt = clock.now();
    const abort = (): void => stopper.abort();
    let cancel = clock.schedule(this.#endLimits?.answerMs ?? TIMEOUT_MS, abort);
    this.#interrupt = () => {
      if (this.#ended) return abort();
      const { answerMs = TIMEOUT_MS } = this.#endLimits ?? {};
      cancel();
      cancel = clock.schedule(Math.max(0, startedAt + answerMs - clock.now()), abort);
    };
    const request = delivery.request();
    try {
      const { status } = await Promise.race([send(request, stopper.signal), abandoned]);
      const verdict = verdictOf(request.method, status);
      if (verdict === 'refused') this.#logRefused(delivery, status);
      return verdict;
    } catch (error) {
      log?.verbose(2, 'Failed to send an event; retrying', { reason: delivery.reason, err: error });
      return 'again';
    } finally {
      cancel();
      this.#interrupt = undefined;
    }
  }

  /** Half of it random, so that the nodes of a cluster do not retry all at once. */
  async #pause(attempt: number): Promise<void> {
    const { clock, random } = this.#options;
    const longest = Math.min(FIRST_RETRY_MS * 2 ** (attempt - 1), LAST_RETRY_MS);
    const interrupted = new AbortController();
    this.#interrupt = () => interrupted.abort();
    await wait(clock, (longest * (1 + random())) / 2, interrupted.signal);
    this.#interrupt = undefined;
  }

  #logRefused({ reason }: Delivery, status: number): void {
    const { log } = this.#options;
    const fields = { reason, status, ...(status === 403 && { hint: REFUSED_HINT }) };
    if (this.#loggedStatuses.has(status)) log?.verbose(2, 'The API server refused an event', fields);
    else log?.warn('The API server refused an event', fields);
    this.#loggedStatuses.add(status);
  }
}

function verdictOf(method: EventRequest['method'], status: number): Verdict {
  if (status >= 200 && status < 300) return 'done';
  // The name is new, so the event is ours: an attempt whose answer was lost has made it.
  if (status === 409) return method === 'POST' ? 'done' : 'again';
  if (status === 404) return method === 'PATCH' ? 'gone' : 'refused';
  // 401 while a token is being renewed.
  return status >= 500 || [401, 408, 429].includes(status) ? 'again' : 'refused';
}
