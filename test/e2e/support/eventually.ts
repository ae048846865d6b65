import { setTimeout as sleep } from 'node:timers/promises';

/** More than ten times what the slowest condition takes on a quiet machine: a limit only ends what will never be. */
const LIMIT_MS = 150_000;

/** Asks until the answer is yes; bounded. */
export async function eventually(
  what: string | (() => string),
  ask: () => boolean | Promise<boolean>,
  timeoutMs = LIMIT_MS,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await ask())) {
    if (performance.now() > deadline)
      throw new Error(`never came: ${typeof what === 'string' ? what : what()}`);
    await sleep(30);
  }
}
