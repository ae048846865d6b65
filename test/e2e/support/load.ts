import type { Host } from '../../../lab/host.ts';

/** Who answered connections that were opened all the while, or how they failed. */
export async function answeredDuring(
  from: Host,
  address: string,
  work: () => Promise<void>,
): Promise<readonly string[]> {
  const end = new AbortController();
  const load = Array.from({ length: 4 }, () => dialUntil(from, address, end.signal));
  await work();
  end.abort();
  return [...new Set((await Promise.all(load)).flat())].sort();
}

async function dialUntil(from: Host, address: string, end: AbortSignal): Promise<readonly string[]> {
  const seen = new Set<string>();
  while (!end.aborted) {
    const answer = await from.request('tcp', address, 80);
    seen.add(answer.outcome === 'answer' ? answer.reply.host : answer.outcome);
  }
  return [...seen];
}
