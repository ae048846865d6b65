/** Who answers where. */
import type { Host } from '../../../lab/host.ts';
import { eventually } from './eventually.ts';

/** The first show one of two, all of them every one of four: by chance they do not once in two million times. */
const QUESTIONS: readonly number[] = [24, 36];
/** As many as can be asked again and again. */
const FEW = 4;

/** Asked often enough that everybody gets a turn. */
export async function answerers(from: Host, address: string, port = 80, timeoutMs?: number): Promise<string> {
  const seen = new Set<string>();
  for (const count of QUESTIONS) {
    for (const each of await ask(count, from, address, port, timeoutMs)) seen.add(each);
    if (seen.size === 1) break;
  }
  return [...seen].sort().join(' ');
}

async function ask(
  count: number,
  from: Host,
  address: string,
  port: number,
  timeoutMs?: number,
): Promise<readonly string[]> {
  const outcomes = await Promise.all(
    Array.from({ length: count }, () => from.request('tcp', address, port, timeoutMs ? { timeoutMs } : {})),
  );
  return outcomes.map((each) => (each.outcome === 'answer' ? each.reply.host : each.outcome));
}

/** While rules are not there yet, nobody answers: then it is better to ask again soon. */
export const SOON_MS = 2000;

/** Until exactly these answer. */
export async function expectAnswers(from: Host, address: string, expected: string, port = 80): Promise<void> {
  let last = '';
  const wanted = new Set(expected.split(' '));
  await eventually(
    () => `${expected} at ${address} port ${port}; last: ${last}`,
    async () => {
      const few = await ask(FEW, from, address, port, SOON_MS);
      last = few.every((each) => wanted.has(each))
        ? await answerers(from, address, port, SOON_MS)
        : few.join(' ');
      return last === expected;
    },
  );
}
