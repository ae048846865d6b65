/** Who answers where. */
import type { Host } from '../../../src/lab/host.ts';
import { eventually } from './eventually.ts';

/** Asked often enough that everybody gets a turn. */
export async function answerers(from: Host, address: string, port = 80): Promise<string> {
  const outcomes = await Promise.all(
    Array.from({ length: 24 }, () => from.request('tcp', address, port, { timeoutMs: 2000 })),
  );
  const seen = outcomes.map((each) => (each.outcome === 'answer' ? each.reply.host : each.outcome));
  return [...new Set(seen)].sort().join(' ');
}

/** Until exactly these answer. */
export async function expectAnswers(from: Host, address: string, expected: string, port = 80): Promise<void> {
  let last = '';
  await eventually(
    () => `${expected} at ${address} port ${port}; last: ${last}`,
    async () => {
      last = await answerers(from, address, port);
      return last === expected;
    },
  );
}
