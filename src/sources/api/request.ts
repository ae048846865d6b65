/** Runs a request so that it always ends: when it is done, when nothing comes any more, or when all is to stop. */
import type { Clock } from '../../time/clock.ts';
import { TimeSlice } from '../../time/timeSlice.ts';
import { ApiFailure, failureOfError, ListenerError } from './failure.ts';

/** The API server ends a request after a minute, or says that it cannot. */
export const ANSWER_SILENCE_MS = 75_000;

export interface RequestGuard {
  readonly signal: AbortSignal;
  /** Something came. The first time, it is the head of the answer. */
  touch(): void;
  /** What came has been worked on. Returns a promise to await, before more is read, where others are due. */
  pause(): Promise<void> | undefined;
  /** From now on another silence is allowed. */
  allow(limitMs: number): void;
  /** If the answer has not begun yet, it must begin within this time. */
  hurry(limitMs: number): void;
}

interface RequestLimits {
  readonly clock: Clock;
  readonly stop: AbortSignal;
  /** For messages: `watching services`. */
  readonly what: string;
  /** How long the answer may take to begin. */
  readonly answerMs: number;
  /** How long it may be silent afterwards. */
  readonly silenceMs: number;
}

/** Whatever goes wrong is thrown as an `ApiFailure`; the stop and a listener's errors are thrown as they are. */
export async function guarded<T>(
  { clock, stop, what, answerMs, silenceMs }: RequestLimits,
  run: (guard: RequestGuard) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const timeSlice = new TimeSlice(clock);
  let isAnswered = false;
  let silence: ApiFailure | undefined;
  const watchdog = new Watchdog(clock, answerMs, (limitMs) => {
    const seconds = Math.round(limitMs / 1000);
    silence = new ApiFailure('API_UNREACHABLE', 'silent', `${what}: nothing came for ${seconds} s`);
    controller.abort(silence);
  });
  const onStop = (): void => controller.abort(stop.reason);
  stop.addEventListener('abort', onStop);
  const guard: RequestGuard = {
    signal: controller.signal,
    touch: () => {
      if (isAnswered) watchdog.touch();
      else watchdog.allow(silenceMs);
      isAnswered = true;
      timeSlice.begin();
    },
    pause: () => timeSlice.pause(),
    allow: (limitMs) => watchdog.allow(limitMs),
    hurry: (limitMs) => {
      if (!isAnswered) watchdog.allow(limitMs);
    },
  };
  try {
    stop.throwIfAborted();
    return await run(guard);
  } catch (error) {
    if (stop.aborted || error instanceof ListenerError) throw error;
    throw silence ?? failureOfError(error, what);
  } finally {
    watchdog.stop();
    stop.removeEventListener('abort', onStop);
  }
}

/**
 * Notices a connection on which nothing comes any more. A node that lost its network, or a firewall that forgot the
 * connection, sends no end: without this a watch would wait for ever.
 */
export class Watchdog {
  readonly #clock: Clock;
  readonly #onSilence: (limitMs: number) => void;
  #limitMs = 0;
  #touchedAt = 0;
  #cancel = (): void => undefined;

  constructor(clock: Clock, limitMs: number, onSilence: (limitMs: number) => void) {
    this.#clock = clock;
    this.#onSilence = onSilence;
    this.allow(limitMs);
  }

  /** Something came. Cheap: no timer is touched. */
  touch(): void {
    this.#touchedAt = this.#clock.now();
  }

  /** From now on another silence is allowed. */
  allow(limitMs: number): void {
    this.#limitMs = limitMs;
    this.touch();
    this.#cancel();
    this.#cancel = this.#clock.schedule(limitMs, () => this.#look());
  }

  stop(): void {
    this.#cancel();
  }

  #look(): void {
    const left = this.#touchedAt + this.#limitMs - this.#clock.now();
    if (left <= 0) this.#onSilence(this.#limitMs);
    else this.#cancel = this.#clock.schedule(left, () => this.#look());
  }
}

/** Watches and streaming lists are answered before the first object is read. */
const LEAST_MS = 4000;
/** A list from etcd is read before the answer begins. */
const LEAST_LIST_MS = 15_000;

/**
 * How long the answer to a request may take to begin. A connection that was accepted and on which nothing comes is given
 * up soon: behind a load balancer the next one may reach a server that lives. If the server is only slow, each further
 * attempt is given twice the time.
 */
export class AnswerLimit {
  readonly #clock: Clock;
  #ms = LEAST_MS;
  #sentAt = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get ofWatch(): number {
    return this.#ms;
  }

  get ofList(): number {
    return Math.max(this.#ms, LEAST_LIST_MS);
  }

  sent(): void {
    this.#sentAt = this.#clock.now();
  }

  /** Twice the time that it took will do the next time. */
  answered(): void {
    this.#set(2 * (this.#clock.now() - this.#sentAt));
  }

  grow(): void {
    this.#set(2 * this.#ms);
  }

  #set(ms: number): void {
    this.#ms = Math.min(Math.max(ms, LEAST_MS), ANSWER_SILENCE_MS);
  }
}
