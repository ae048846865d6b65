/**
 * Runs programs while Junction starts. SIGTERM must not wait for one that waits for the xtables lock: that one is killed,
 * which is safe, because iptables changes a table as a whole or not at all. What tidies up after it may still run, for a
 * moment.
 */
import { type CommandRunner, run } from '../system/processes.ts';

const TIDYING_LIMIT_MS = 2000;

export class StartRunner {
  readonly #signal: AbortSignal;
  readonly #runner: CommandRunner;
  #hasStarted = false;

  constructor(signal: AbortSignal, runner: CommandRunner = run) {
    this.#signal = signal;
    this.#runner = runner;
  }

  /** From now on the signal is no concern of the programs that run. */
  started(): void {
    this.#hasStarted = true;
  }

  readonly run: CommandRunner = async (argv, options = {}) => {
    if (this.#hasStarted) return this.#runner(argv, options);
    if (!this.#signal.aborted) return this.#runner(argv, { ...options, signal: this.#signal });
    // Its outcome does not matter any more: whoever asked is to end, and tidies up on the way.
    const timeoutMs = Math.min(options.timeoutMs ?? TIDYING_LIMIT_MS, TIDYING_LIMIT_MS);
    await this.#runner(argv, { ...options, timeoutMs }).catch(() => undefined);
    throw this.#signal.reason;
  };
}
