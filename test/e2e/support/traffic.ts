/** Who answers where. */
import type { Host } from '../../../lab/host.ts';
import { eventually } from './eventually.ts';

/** The first show one of two, all of them every one of four: by chance they do not once in two million times. */
const QUESTIONS: readonly number[] = [24, 36];

/** Asked often enough that everybody gets a turn. */
export async function answerers(from: Host, address: string, port = 80, timeoutMs?: number): Promise<string> {
  const seen = new Set<string>();
  for (const count of QUESTIONS) {
    const outcomes = await Promise.all(
      Array.from({ length: count }, () => from.request('tcp', address, port, timeoutMs ? { timeoutMs } : {})),
    );
    for (const each of outcomes) seen.add(each.outcome === 'answer' ? each.reply.host : each.outcome);
    if (seen.size === 1) break;
  }
  return [...seen].sort().join(' ');
}

/** While rules are not there yet, nobody answers: then it is better to ask again soon. */
export const SOON_MS = 2000;

/** Until exactly these answer. */
export async function expectAnswers(from: Host, address: string, expected: string, port = 80): Promise<void> {
  let last = '';
  await eventually(
    () => `${expected} at ${address} port ${port}; last: ${last}`,
    async () => {
      last = await answerers(from, address, port, SOON_MS);
      return last === expected;
    },
  );
}
