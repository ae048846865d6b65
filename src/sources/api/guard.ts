/** Runs a request so that it always ends: when it is done, when nothing comes any more, or when all is to stop. */
import { TimeSlice } from '../../time/timeSlice.ts';
import type { Clock } from '../../time/clock.ts';
import { type ApiFailure, failureOfError, ListenerError, silent } from './failure.ts';
import { Watchdog } from './watchdog.ts';

/** The API server ends a request after a minute, or says that it cannot. */
export const ANSWER_SILENCE_MS = 75_000;

/** Short, because several resources are read at the same time. */
const SLICE_MS = 10;

export interface Guard {
  readonly signal: AbortSignal;
  /** Something came. The first time, it is the head of the answer. */
  sign(): void;
  /** What came has been worked on. Something to wait for, before more is read, where others are due. */
  rest(): Promise<void> | undefined;
  /** From now on another silence is allowed. */
  allow(limitMs: number): void;
  /** If the answer has not begun yet, it must begin within this time. */
  hurry(limitMs: number): void;
}

export interface MonitorOptions {
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
export async function guarded<T>(options: MonitorOptions, run: (guard: Guard) => Promise<T>): Promise<T> {
  const { clock, stop, what } = options;
  const controller = new AbortController();
  const timeSlice = new TimeSlice(clock, SLICE_MS);
  let limitMs = options.answerMs;
  let isAnswered = false;
  let silence: ApiFailure | undefined;
  const watchdog = new Watchdog(clock, limitMs, () => {
    silence = silent(`${what}: nothing came for ${Math.round(limitMs / 1000)} s`);
    controller.abort(silence);
  });
  const onStop = (): void => controller.abort(stop.reason);
  stop.addEventListener('abort', onStop);
  const allow = (milliseconds: number): void => {
    limitMs = milliseconds;
    watchdog.allow(milliseconds);
  };
  const guard: Guard = {
    signal: controller.signal,
    sign: () => {
      if (isAnswered) watchdog.sign();
      else allow(options.silenceMs);
      isAnswered = true;
      timeSlice.begin();
    },
    rest: () => timeSlice.pause(),
    allow,
    hurry: (milliseconds) => {
      if (!isAnswered) allow(milliseconds);
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
