import { setTimeout as sleep } from 'node:timers/promises';

/** More than ten times what the slowest condition takes on a quiet machine: a limit only ends what will never be. */
const LIMIT_MS = 150_000;
/** Asking often starts a program each time; what takes long already is not much later for it. */
const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 1000;

/** Asks until the answer is yes, less and less often; bounded. */
export async function eventually(
  what: string | (() => string),
  ask: () => boolean | Promise<boolean>,
  timeoutMs = LIMIT_MS,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  for (let pauseMs = FIRST_PAUSE_MS; !(await ask()); pauseMs = Math.min(1.2 * pauseMs, LONGEST_PAUSE_MS)) {
    if (performance.now() > deadline)
      throw new Error(`never came: ${typeof what === 'string' ? what : what()}`);
    await sleep(pauseMs);
  }
}
