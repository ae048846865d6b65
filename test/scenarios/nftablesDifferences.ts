/** Where the nftables mode does something else than `decide` says. `docs/nftables.md` tells users the same. */
import { isLoopback } from '../../src/model/ip.ts';
import { classifySource, decide, isAllowed, isLocal } from '../../src/plan/decide.ts';
import type { Protocol } from '../../src/model/objects.ts';
import type { Plan } from '../../src/plan/types.ts';
import type { Difference } from './differences.ts';

export const NFTABLES_DIFFERENCES: readonly Difference[] = [
  {
    reason: 'node ports do not answer on loopback addresses',
    mechanisms: ['nftables'],
    instead: (_, { destination }) => (isLoopback(destination) ? 'pass' : undefined),
  },
  {
    reason: 'a cluster IP refuses ports that its service does not have',
    mechanisms: ['nftables'],
    instead: (plan, packet, host) => {
      const isPass = decide(plan, packet, host).verdict === 'pass';
      const { destination } = packet;
      return isPass && !isLocal(destination, host) && isClusterIP(plan, destination) ? 'reject' : undefined;
    },
  },
  {
    reason: 'source ranges are asked before the refusal for want of endpoints',
    mechanisms: ['nftables'],
    instead: (plan, packet, host) => {
      const decision = decide(plan, packet, host);
      if (decision.verdict !== 'reject') return undefined;
      return isAllowed(decision.frontend.allowedSources, packet.source) ? undefined : 'drop';
    },
  },
  {
    reason: 'an endpoint of another node that dials itself through this one is not masqueraded',
    mechanisms: ['nftables'],
    instead: (plan, packet, host) => {
      const decision = decide(plan, packet, host);
      if (decision.verdict !== 'forward') return undefined;
      const { servicePort, frontend } = decision;
      const route = frontend.routes[classifySource(plan.view.localDetector, packet, host)];
      if (route.verdict !== 'forward' || route.masquerade) return undefined;
      const here = endpointsHere(plan);
      const targets = decision.targets.map((target) =>
        here.has(endpointKey(servicePort.protocol, target.endpoint))
          ? target
          : { ...target, masquerade: false },
      );
      return { targets, sticky: servicePort.affinitySeconds !== undefined };
    },
  },
];

function isClusterIP(plan: Plan, address: string): boolean {
  for (const { frontends } of plan.servicePorts.values())
    if (frontends.some((frontend) => frontend.kind === 'clusterIP' && frontend.address === address))
      return true;
  return false;
}

/** Of any service. */
function endpointsHere(plan: Plan): ReadonlySet<string> {
  return new Set(
    [...plan.servicePorts.values()].flatMap(({ protocol, localEndpoints = [] }) =>
      localEndpoints.map((endpoint) => endpointKey(protocol, endpoint)),
    ),
  );
}

function endpointKey(
  protocol: Protocol,
  { ip, port }: { readonly ip: string; readonly port: number },
): string {
  return `${protocol} ${ip} ${port}`;
}
