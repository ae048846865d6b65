/**
 * Where a mechanism does something else than `decide` says, because kube-proxy's own rules do, and operators expect
 * those to the letter.
 */
import type { LayoutName } from '../../src/modes/iptables/rules/fragment.ts';
import { decide, type ForwardTarget, type Host, isLocal, type Packet } from '../../src/plan/decide.ts';
import type { Plan } from '../../src/plan/types.ts';
import { IPVS_DIFFERENCES } from './ipvsDifferences.ts';
import { NFTABLES_DIFFERENCES } from './nftablesDifferences.ts';
import type { Refusal } from './packets.ts';

/** What makes packets do what the plan says: a layout of iptables, IPVS, or nftables. */
export type Mechanism = LayoutName | 'ipvs' | 'nftables';

/** What becomes of a packet instead. */
export type Instead = Refusal | { readonly targets: readonly ForwardTarget[]; readonly sticky: boolean };

export interface Difference {
  readonly reason: string;
  readonly mechanisms: readonly Mechanism[];
  /** `undefined`: this is no such packet. */
  instead(plan: Plan, packet: Packet, host: Host, mechanism: Mechanism): Instead | undefined;
}

/** The first that has to do with a packet counts. */
export const DIFFERENCES: readonly Difference[] = [
  {
    reason:
      'OUTPUT does not lead to KUBE-EXTERNAL-SERVICES, so nobody refuses what the node itself sends there',
    mechanisms: ['current'],
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
    mechanisms: ['current', 'classic'],
    instead: (plan, packet, host, mechanism) => {
      if (!isLocal(packet.destination, host)) return undefined;
      if (decide(plan, packet, host).verdict !== 'pass') return undefined;
      const verdict = plan.find(undefined, packet.protocol, packet.port)?.frontend.routes.outside.verdict;
      if (verdict === 'reject') return 'reject';
      // `classic` drops by a mark that only packets for an answering address get.
      return verdict === 'drop' && mechanism === 'current' ? 'drop' : undefined;
    },
  },
  ...IPVS_DIFFERENCES,
  ...NFTABLES_DIFFERENCES,
];

export function differenceIn(
  mechanism: Mechanism,
  plan: Plan,
  packet: Packet,
  host: Host,
): Instead | undefined {
  for (const difference of DIFFERENCES) {
    const instead = difference.mechanisms.includes(mechanism)
      ? difference.instead(plan, packet, host, mechanism)
      : undefined;
    if (instead !== undefined) return instead;
  }
  return undefined;
}
