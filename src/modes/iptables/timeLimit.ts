/**
 * How long a command may take, and how much more for each megabyte of its input. kube-proxy waits for iptables-restore
 * without a limit, so that one that hangs ends all syncs. A machine that is merely slow gets twice the time after each
 * failure, up to the last limit.
 */
import { isJunctionError } from '../../errors.ts';
import type { Argv, CommandRunner, RunOptions, RunResult } from '../../system/processes.ts';

export const TIMEOUT_MS = 30_000;
const TIMEOUT_MS_PER_MEGABYTE = 15_000;
const LAST_TIMEOUT_MS = 5 * 60_000;

/** Of one client's commands. */
export class TimeLimit {
  readonly #runner: CommandRunner;
  readonly #timeoutMs: number;
  /** In a row. */
  #timeouts = 0;

  constructor(runner: CommandRunner, timeoutMs = TIMEOUT_MS) {
    this.#runner = runner;
    this.#timeoutMs = timeoutMs;
  }

  async run(argv: Argv, options: Omit<RunOptions, 'timeoutMs'>): Promise<RunResult> {
    try {
      const timeoutMs = this.#limitFor(options.stdin?.length ?? 0);
      const result = await this.#runner(argv, { ...options, timeoutMs });
      this.#timeouts = 0;
      return result;
    } catch (error) {
      if (isJunctionError(error, 'PROGRAM_TIMED_OUT')) this.#timeouts++;
      throw error;
    }
  }

  #limitFor(inputLength: number): number {
    const once = this.#timeoutMs + (inputLength / (1 << 20)) * TIMEOUT_MS_PER_MEGABYTE;
    return Math.round(Math.min(once * 2 ** this.#timeouts, Math.max(once, LAST_TIMEOUT_MS)));
  }
}
