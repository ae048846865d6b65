/** Time limits that a test gives, and what a busy machine makes of them. */

/** A program that is to be stopped by its limit has to start within it: some ms on a quiet machine. */
const LIMITS_MS = [500, 5000, 50_000];

/** Tries with more and more time, until the machine was quick enough for an attempt to prove something. */
export async function withEnoughTime(attempt: (limitMs: number) => Promise<boolean>): Promise<void> {
  for (const limitMs of LIMITS_MS) if (await attempt(limitMs)) return;
  throw new Error(`too slow to prove anything within ${LIMITS_MS.at(-1)} ms`);
}
