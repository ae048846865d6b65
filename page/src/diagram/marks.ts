/** What another answer changed in the diagram, so that it can be marked. */
import { fateOf, frontendWords } from '../../../src/explain/serviceWords.ts';
import type { EndpointRow, ServicePortExplanation } from '../../../src/explain/types.ts';
import type { Box } from './graph.ts';

type Signatures = ReadonlyMap<string, string>;

/** Keys of parts, and what is seen of each. */
export function signaturesOf({ packets, endpoints, state }: ServicePortExplanation): Signatures {
  const found = new Map<string, string>();
  for (const pool of ['cluster', 'local'] as const)
    found.set(`pool ${pool}`, String(endpoints.filter(({ pools }) => pools.includes(pool)).length));
  for (const packet of packets) {
    const key = `frontend ${frontendWords(packet)}`;
    found.set(key, `${state} ${packet.frontend?.policy ?? ''}`);
    if (packet.verdict !== 'forwarded') found.set(`end ${fateOf(packet)}`, '');
  }
  for (const row of endpoints) found.set(rowKey(row), stateOf(row));
  return found;
}

function rowKey({ address }: EndpointRow): string {
  return `row ${address}`;
}

function stateOf({ ready, serving, terminating, pools, leftOut }: EndpointRow): string {
  return JSON.stringify([ready, serving, terminating, pools, leftOut?.text]);
}

/** Keys of what is new or different. */
export function changedSince(before: Signatures, after: Signatures): ReadonlySet<string> {
  return new Set([...after].filter(([key, text]) => before.get(key) !== text).map(([key]) => key));
}

export function isMarked({ key, rows }: Box, changed: ReadonlySet<string>): boolean {
  if (changed.size === 0) return false;
  return changed.has(key) || (rows?.some((row) => changed.has(rowKey(row))) ?? false);
}
