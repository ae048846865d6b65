/** Who is killed when a container's memory is short: a question, not the proxy that it asks. */
import { readFileSync, writeFileSync } from 'node:fs';

const KILLED_FIRST = '1000';
/** What these do half is worse than what they cost. */
const NOT_FOR_QUESTIONS: ReadonlySet<string | undefined> = new Set(['run', 'cleanup']);

/**
 * `kubectl exec` starts a command in the proxy's container, with the score of a critical pod (-997). `doctor` with 10,000
 * dual-stack services took 370 MiB; with equal scores the kernel kills the larger of the two, which may be the proxy.
 */
export function giveWayToProxy(command: string | undefined, file = '/proc/self/oom_score_adj'): void {
  if (NOT_FOR_QUESTIONS.has(command)) return;
  try {
    if (Number(readFileSync(file, 'utf8')) < 0) writeFileSync(file, KILLED_FIRST);
  } catch {
    // Without /proc there is nothing to give way by.
  }
}
