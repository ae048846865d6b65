/**
 * Where the iptables layouts do something else than `decide` says, because kube-proxy's own rules do, and operators
 * expect those to the letter.
 */
import type { LayoutName } from '../../src/backends/iptables/fragment.ts';
import { decide, type Host, isLocal, type Packet } from '../../src/plan/decide.ts';
import type { Plan } from '../../src/plan/types.ts';
import type { Refusal } from './packets.ts';

interface Difference {
  readonly reason: string;
  readonly layouts: readonly LayoutName[];
  /** What happens instead; `undefined`: this is no such packet. */
  instead(plan: Plan, packet: Packet, host: Host, layout: LayoutName): Refusal | undefined;
}

export const DIFFERENCES: readonly Difference[] = [
  {
    reason:
      'OUTPUT does not lead to KUBE-EXTERNAL-SERVICES, so nobody refuses what the node itself sends there',
    layouts: ['current'],
    instead: (plan, packet, host) => {
      if (packet.inInterface !== undefined || isLocal(packet.destination, host)) return undefined;
      const decision = decide(plan, packet, host);
      if (decision.verdict !== 'reject' || decision.frontend.kind === 'clusterIP') return undefined;
      return 'pass';
    },
  },
  {
    reason:
      'a node port without usable endpoints is refused by its number alone, on every address of the node',
    layouts: ['current', 'classic'],
    instead: (plan, packet, host, layout) => {
      if (!isLocal(packet.destination, host)) return undefined;
      if (decide(plan, packet, host).verdict !== 'pass') return undefined;
      const verdict = plan.find(undefined, packet.protocol, packet.port)?.frontend.routes.outside.verdict;
      if (verdict === 'reject') return 'reject';
      // `classic` drops by a mark that only packets for an answering address get.
      return verdict === 'drop' && layout === 'current' ? 'drop' : undefined;
    },
  },
];

export function differenceIn(
  layout: LayoutName,
  plan: Plan,
  packet: Packet,
  host: Host,
): Refusal | undefined {
  for (const difference of DIFFERENCES) {
    const instead = difference.layouts.includes(layout)
      ? difference.instead(plan, packet, host, layout)
      : undefined;
    if (instead !== undefined) return instead;
  }
  return undefined;
}
