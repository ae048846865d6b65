import { setTimeout as sleep } from 'node:timers/promises';

/** Asks until the answer is yes; bounded. */
export async function eventually(
  what: string | (() => string),
  ask: () => boolean | Promise<boolean>,
  timeoutMs = 15_000,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await ask())) {
    if (performance.now() > deadline)
      throw new Error(`never came: ${typeof what === 'string' ? what : what()}`);
    await sleep(30);
  }
}
