/** Where the nftables mode does something else than `decide` says. `docs/nftables.md` lists the same for users. */
import { cidrContains, type Ip, isLoopback } from '../../../model/ip.ts';
import { isLocalEndpoint } from '../../../plan/addresses.ts';
import { classifySource, type ForwardTarget, isAllowed, isLocal } from '../../../plan/decide.ts';
import type { Plan } from '../../../plan/types.ts';
import type { Deviation } from '../../deviations.ts';

export const NFTABLES_DEVIATIONS: readonly Deviation[] = [
  {
    reason: 'node ports do not answer on loopback addresses in nftables mode, as with kube-proxy',
    instead: ({ packet }) => (isLoopback(packet.destination) ? 'pass' : undefined),
  },
  {
    reason: 'in nftables mode a cluster IP refuses ports that its service does not have, as with kube-proxy',
    instead: ({ plan, packet: { destination }, host, decision }) =>
      decision.verdict === 'pass' && !isLocal(destination, host) && isClusterIP(plan, destination)
        ? 'reject'
        : undefined,
  },
  {
    reason:
      'in nftables mode packets to a cluster IP that no service has are dropped, as with kube-proxy: the address is in a ServiceCIDR',
    instead: ({ packet: { destination }, host, decision, serviceCidrs }) =>
      decision.verdict === 'pass' &&
      !isLocal(destination, host) &&
      serviceCidrs.some((cidr) => cidrContains(cidr, destination))
        ? 'drop'
        : undefined,
  },
  {
    reason:
      'in nftables mode source ranges are checked before the refusal for want of endpoints, as with kube-proxy',
    instead: ({ packet, decision }) => {
      if (decision.verdict !== 'reject') return undefined;
      return isAllowed(decision.frontend.allowedSources, packet.source) ? undefined : 'drop';
    },
  },
  {
    reason:
      'an endpoint of another node that dials itself through this one is not masqueraded; in a cluster its own node serves it',
    instead: ({ plan, packet, host, decision }) => {
      if (decision.verdict !== 'forward') return undefined;
      const { servicePort, frontend } = decision;
      const route = frontend.routes[classifySource(plan.view.localDetector, packet, host)];
      if (route.verdict !== 'forward' || route.masquerade) return undefined;
      // Of one packet, few targets are the client itself: all services are looked through for those alone.
      const isLost = ({ endpoint, masquerade }: ForwardTarget): boolean =>
        masquerade && !isLocalEndpoint(plan, servicePort.protocol, endpoint);
      const lost = new Set(decision.targets.filter(isLost));
      if (lost.size === 0) return undefined;
      return {
        targets: decision.targets.map((target) =>
          lost.has(target) ? { ...target, masquerade: false } : target,
        ),
        pool: route.pool,
      };
    },
  },
];

function isClusterIP(plan: Plan, address: Ip): boolean {
  for (const { frontends } of plan.portsAt(address))
    if (frontends[0]?.kind === 'clusterIP' && frontends[0].address === address) return true;
  return false;
}
