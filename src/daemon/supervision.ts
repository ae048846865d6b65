/**
 * How a run ends: by a signal, within five seconds whatever hangs, with a word about what hung; or by an error that
 * nobody caught, with its stack. No program that runs for us is left behind either way.
 */
import type { Log } from '../log/log.ts';
import { exitNow } from '../system/libc.ts';
import { killChildren, printChildren } from '../system/processes.ts';

interface SupervisionOptions {
  readonly log: Log;
  /** Writes what waits to be logged, for so long at most. */
  readonly flush: (milliseconds: number) => void;
}

/** Kubernetes kills after 30 seconds, and systemd after 90; who waits at a terminal has less patience. */
const HANG_AFTER_MS = 2500;
const KILL_AFTER_MS = 3300;
const EXIT_AFTER_MS = 4300;
/** For the last words, if standard error does not take them. */
const FLUSH_MS = 300;
const SIGNALS = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const;
type EndSignal = keyof typeof SIGNALS;

export class Supervision {
  readonly #options: SupervisionOptions;
  readonly #controller = new AbortController();
  readonly #timers: NodeJS.Timeout[] = [];
  #doing = 'starting';
  #isStopping = false;
  readonly #onSignal = (signal: EndSignal): void => this.#signalled(signal);
  readonly #onUncaught = (error: unknown, origin: string): void => this.#uncaught(error, origin);
  readonly #onWarning = (warning: Error): void =>
    this.#options.log.warn('Node.js warns', { warning: warning.name, err: warning });

  constructor(options: SupervisionOptions) {
    this.#options = options;
  }

  /** Aborted by the first signal. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  start(): void {
    for (const signal of Object.keys(SIGNALS)) {
      process.removeAllListeners(signal); // those that end other commands at once
      process.on(signal, this.#onSignal);
    }
    process.on('uncaughtException', this.#onUncaught);
    // Node's own listener prints to standard error, and waits for its reader.
    process.removeAllListeners('warning');
    process.on('warning', this.#onWarning);
  }

  /** Everything ended as it should. */
  end(): void {
    for (const signal of Object.keys(SIGNALS)) process.off(signal, this.#onSignal);
    process.off('uncaughtException', this.#onUncaught);
    process.off('warning', this.#onWarning);
    for (const timer of this.#timers) clearTimeout(timer);
  }

  /** What the run is about, in case that it hangs: `stopping the IPv4 family`. */
  doing(what: string): void {
    this.#doing = what;
  }

  /** From here on, the end comes within five seconds. */
  stopping(): void {
    if (this.#isStopping) return;
    this.#isStopping = true;
    this.#after(HANG_AFTER_MS, () => {
      this.#logWhatHangs('Stopping takes long; ending the programs that still run');
      killChildren('SIGTERM');
    });
    this.#after(KILL_AFTER_MS, () => killChildren('SIGKILL'));
    this.#after(EXIT_AFTER_MS, () => {
      this.#logWhatHangs('Stopping hangs; exiting without it. The rules stay in place');
      this.#exit(1);
    });
  }

  #signalled(signal: EndSignal): void {
    if (this.#controller.signal.aborted) {
      this.#logWhatHangs(`Received ${signal} again; exiting at once. The rules stay in place`);
      this.#exit(128 + SIGNALS[signal]);
    }
    this.#options.log.info(`Received ${signal}; stopping`);
    this.#controller.abort();
    this.stopping();
  }

  #logWhatHangs(message: string): void {
    const programs = printChildren();
    this.#options.log.error(message, {
      waitingFor: this.#doing,
      ...(programs.length > 0 && { programs: programs.join('; ') }),
    });
  }

  #uncaught(error: unknown, origin: string): void {
    const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
    const what = origin === 'unhandledRejection' ? 'Unhandled rejection' : 'Uncaught exception';
    this.#options.log.error(`${what}; exiting. The rules stay in place`, { doing: this.#doing, stack });
    this.#exit(1);
  }

  #exit(code: number): never {
    killChildren('SIGKILL');
    this.#options.flush(FLUSH_MS);
    return exitNow(code);
  }

  #after(milliseconds: number, act: () => void): void {
    this.#timers.push(setTimeout(act, milliseconds));
  }
}
