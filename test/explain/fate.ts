/** What explain says of a packet, in the words of a scenario's row. */
import { parseIp } from '../../src/model/ip.ts';
import type { PacketExplanation } from '../../src/explain/types.ts';
import { type Fate, type Subject, targetAt } from '../scenarios/packets.ts';

export function fateOf(answer: PacketExplanation, row: Subject): Fate {
  const { verdict, endpoints, affinitySeconds } = answer;
  if (verdict !== 'forwarded') return { verdict: REFUSALS[verdict] };
  return {
    verdict: 'forward',
    sticky: affinitySeconds !== undefined,
    targets: endpoints.map(({ address, masquerade }) => {
      const [, host = '', port = ''] = /^\[?(.*?)\]?:(\d+)$/.exec(address) ?? [];
      return targetAt(row, parseIp(host) ?? '', Number(port), masquerade);
    }),
  };
}

const REFUSALS = { rejected: 'reject', dropped: 'drop', passed: 'pass' } as const;
