/** Where the IPVS mode does something else than `decide` says. `docs/ipvs.md` tells users the same. */
import { isLoopback } from '../../src/model/ip.ts';
import {
  classifySource,
  type Decision,
  decide,
  type ForwardTarget,
  type Host,
  isAllowed,
  isLocal,
  type Packet,
} from '../../src/plan/decide.ts';
import type { FoundFrontend, Plan } from '../../src/plan/types.ts';
import type { Difference, Instead } from './differences.ts';

type Judge = (decision: Decision, plan: Plan, packet: Packet, host: Host) => Instead | undefined;

export const IPVS_DIFFERENCES: readonly Difference[] = [
  differs(
    'node ports do not answer on loopback addresses: IPVS sees nothing that stays on lo',
    (_, __, packet) => (isLoopback(packet.destination) ? 'pass' : undefined),
  ),
  differs(
    'a service address is an address of the node, which refuses ports that no service has there',
    ({ verdict }, plan, { destination }, host) =>
      verdict === 'pass' && !isLocal(destination, host) && isServiceAddress(plan, destination)
        ? 'reject'
        : undefined,
  ),
  differs(
    'what the node itself sends is refused by IPVS before any rule could drop it in silence',
    (decision, _, { inInterface }) =>
      decision.verdict === 'drop' && decision.reason === 'no local endpoints' && inInterface === undefined
        ? 'reject'
        : undefined,
  ),
  differs(
    'the firewall of source ranges comes before the refusal for want of endpoints',
    (decision, _, packet) => {
      if (decision.verdict !== 'reject' || packet.inInterface === undefined) return undefined;
      return isAllowed(decision.frontend.allowedSources, packet.source) ? undefined : 'drop';
    },
  ),
  differs(
    'a virtual server has one list of endpoints: with the policy Local, pods and the node get those of this node too',
    (decision, plan, packet, host) => {
      if (decision.verdict !== 'forward') return undefined;
      const { outside } = decision.frontend.routes;
      const route = decision.frontend.routes[classifySource(plan.view.localDetector, packet, host)];
      if (outside.verdict !== 'forward' || route.verdict !== 'forward' || outside.pool === route.pool)
        return undefined;
      const sticky = decision.servicePort.affinitySeconds !== undefined;
      const masquerade = masqueradesNode(decision, plan, packet) ?? route.masquerade;
      return { targets: targetsIn(decision, outside.pool, packet, masquerade), sticky };
    },
  ),
  differs(
    'of the node itself, only what it sends from its own address or the dialled one is held against source ranges',
    (decision, plan, packet) => {
      if (decision.verdict !== 'drop' || decision.reason !== 'source not allowed') return undefined;
      if (packet.inInterface !== undefined) return undefined;
      if (packet.source === plan.view.nodeIp || packet.source === packet.destination) return undefined;
      const { outside, pod, node } = decision.frontend.routes;
      const served = [outside, pod, node].find(({ verdict }) => verdict === 'forward');
      if (served?.verdict !== 'forward') return undefined;
      const sticky = decision.servicePort.affinitySeconds !== undefined;
      const masquerade = masqueradesNode(decision, plan, packet) ?? true;
      return { targets: targetsIn(decision, served.pool, packet, masquerade), sticky };
    },
  ),
  differs(
    'what the node itself sends comes from the node either way: masqueraded only where it would come from a service address',
    (decision, plan, packet, host) => {
      if (decision.verdict !== 'forward') return undefined;
      const masquerade = masqueradesNode(decision, plan, packet);
      const route = decision.frontend.routes[classifySource(plan.view.localDetector, packet, host)];
      if (masquerade === undefined || route.verdict !== 'forward' || masquerade === route.masquerade)
        return undefined;
      const sticky = decision.servicePort.affinitySeconds !== undefined;
      return { targets: targetsIn(decision, route.pool, packet, masquerade), sticky };
    },
  ),
];

/** Whether the rules masquerade a packet of the node's own; `undefined`: it is another's. */
function masqueradesNode(
  { frontend, servicePort }: FoundFrontend,
  { view }: Plan,
  packet: Packet,
): boolean | undefined {
  const { inInterface, source } = packet;
  if (inInterface !== undefined) return undefined;
  if (isLoopback(source)) return false;
  switch (frontend.kind) {
    case 'nodePort':
      // The client's address is kept, and here that is the node's own.
      return !servicePort.preservesClientIP;
    case 'clusterIP': {
      // Without a choice of its own it dials a service address from that address, which no endpoint could answer.
      if (view.masqueradeAll || source === view.nodeIp) return true;
      const { localDetector } = view;
      return localDetector.kind !== 'none' && classifySource(localDetector, packet, NOBODY) !== 'pod';
    }
    default:
      return true;
  }
}

const NOBODY: Host = { addresses: [] };

/**
 * An endpoint of another node that dials itself through this one, which no cluster does: its own node's proxy serves it.
 * KUBE-LOOP-BACK has endpoints of this node only, so one in so many of its connections is lost.
 */
export function dialsItselfFromElsewhere(plan: Plan, packet: Packet, host: Host): boolean {
  const decision = decide(plan, packet, host);
  if (decision.verdict !== 'forward') return false;
  return decision.targets.some(({ endpoint }) => endpoint.ip === packet.source && !endpoint.isLocal);
}

function differs(reason: string, judge: Judge): Difference {
  return {
    reason,
    mechanisms: ['ipvs'],
    instead: (plan, packet, host) => judge(decide(plan, packet, host), plan, packet, host),
  };
}

function isServiceAddress(plan: Plan, address: string): boolean {
  for (const { frontends } of plan.servicePorts.values())
    if (frontends.some((frontend) => frontend.address === address)) return true;
  return false;
}

function targetsIn(
  { servicePort }: FoundFrontend,
  pool: 'cluster' | 'local',
  packet: Packet,
  masquerade: boolean,
): readonly ForwardTarget[] {
  return (servicePort.pools[pool] ?? []).map((endpoint) => ({
    endpoint,
    masquerade: masquerade || endpoint.ip === packet.source,
  }));
}
