import { setTimeout as sleep } from 'node:timers/promises';
import type { Host } from '../../../lab/host.ts';

/** Some 400 connections a second, which leave processor time to what is tested. */
const BETWEEN_MS = 10;

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
    await sleep(BETWEEN_MS);
  }
  return [...seen];
}
