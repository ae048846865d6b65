/** Where the iptables rules do something else than `decide` says. `docs/iptables.md` lists the same for users. */
import { isLocal } from '../../../plan/decide.ts';
import type { Route } from '../../../plan/types.ts';
import type { Decided, Deviation } from '../../deviations.ts';
import type { LayoutName } from './fragment.ts';

const UNREFUSED_FROM_NODE: Deviation = {
  reason:
    'what the node itself sends to an external or load-balancer IP without endpoints is not refused: it leaves the node, as with kube-proxy',
  instead: ({ packet, host, decision }) => {
    if (packet.inInterface !== undefined || isLocal(packet.destination, host)) return undefined;
    if (decision.verdict !== 'reject' || decision.frontend.kind === 'clusterIP') return undefined;
    return 'pass';
  },
};

const REFUSED_EVERYWHERE: Deviation = {
  reason:
    'a node port without usable endpoints is refused by its number alone, on every address of the node, as with kube-proxy',
  instead: (decided) => (unusedNodePort(decided) === 'reject' ? 'reject' : undefined),
};

/** `classic` drops by a mark that only packets for an answering address get. */
const DROPPED_EVERYWHERE: Deviation = {
  reason:
    'a node port without local endpoints is dropped by its number alone, on every address of the node, as with kube-proxy',
  instead: (decided) => (unusedNodePort(decided) === 'drop' ? 'drop' : undefined),
};

/** What becomes of clients outside at a node port, dialled at an address of the node where node ports do not answer. */
function unusedNodePort({ plan, packet, host, decision }: Decided): Route['verdict'] | undefined {
  if (decision.verdict !== 'pass' || !isLocal(packet.destination, host)) return undefined;
  return plan.find(undefined, packet.protocol, packet.port)?.frontend.routes.outside.verdict;
}

export const IPTABLES_DEVIATIONS: Readonly<Record<LayoutName, readonly Deviation[]>> = {
  current: [UNREFUSED_FROM_NODE, REFUSED_EVERYWHERE, DROPPED_EVERYWHERE],
  classic: [REFUSED_EVERYWHERE],
};
