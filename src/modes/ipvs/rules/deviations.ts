/** Where the IPVS mode does something else than `decide` says. `docs/ipvs.md` lists the same for users. */
import type { Endpoint } from '../../../model/endpointTracker.ts';
import { type Ip, isLoopback } from '../../../model/ip.ts';
import type { Protocol } from '../../../model/objects.ts';
import { isLocalEndpoint } from '../../../plan/addresses.ts';
import { classifySource, type Host, isAllowed, isLocal, type Packet } from '../../../plan/decide.ts';
import type { FoundFrontend, Plan, PoolName } from '../../../plan/types.ts';
import type { Decided, Deviation, Instead } from '../../deviations.ts';

export const IPVS_DEVIATIONS: readonly Deviation[] = [
  {
    reason: 'node ports do not answer on loopback addresses: IPVS sees nothing that stays on lo',
    instead: ({ packet }) => (isLoopback(packet.destination) ? 'pass' : undefined),
  },
  {
    reason:
      'in IPVS mode a service address is an address of the node, which refuses ports that no service has there',
    instead: ({ decision, plan, packet: { destination }, host }) =>
      decision.verdict === 'pass' && !isLocal(destination, host) && hasServicePort(plan, destination)
        ? 'reject'
        : undefined,
  },
  {
    reason: 'what the node itself sends is refused by IPVS before any rule could drop it in silence',
    instead: ({ decision, packet }) =>
      decision.verdict === 'drop' &&
      decision.reason === 'no local endpoints' &&
      packet.inInterface === undefined
        ? 'reject'
        : undefined,
  },
  {
    reason: 'in IPVS mode source ranges are checked before the refusal for want of endpoints',
    instead: ({ decision, packet }) => {
      if (decision.verdict !== 'reject' || packet.inInterface === undefined) return undefined;
      return isAllowed(decision.frontend.allowedSources, packet.source) ? undefined : 'drop';
    },
  },
  {
    reason:
      'a virtual server of IPVS has one list of endpoints for all sources: with the policy Local, pods and the node reach those of this node too',
    instead: (decided) => {
      const found = forwarding(decided);
      const outside = found?.decision.frontend.routes.outside;
      if (!found || outside?.verdict !== 'forward' || outside.pool === found.route.pool) return undefined;
      return targetsIn(decided, found.decision, outside.pool, found.masquerade);
    },
  },
  {
    reason:
      'in IPVS mode, of what the node itself sends, only what comes from its own address or the dialled one is held against source ranges',
    instead: (decided) => {
      const { decision, plan, packet } = decided;
      if (decision.verdict !== 'drop' || decision.reason !== 'source not allowed') return undefined;
      if (packet.inInterface !== undefined) return undefined;
      if (packet.source === plan.view.nodeIp || packet.source === packet.destination) return undefined;
      const { outside, pod, node } = decision.frontend.routes;
      const served = [outside, pod, node].find(({ verdict }) => verdict === 'forward');
      if (served?.verdict !== 'forward') return undefined;
      return targetsIn(decided, decision, served.pool, masqueradesNode(decision, plan, packet) ?? true);
    },
  },
  {
    reason:
      'what the node itself sends comes from the node either way: in IPVS mode it is masqueraded only where it would come from a service address',
    instead: (decided) => {
      const found = forwarding(decided);
      if (!found || found.masquerade === found.route.masquerade) return undefined;
      return targetsIn(decided, found.decision, found.route.pool, found.masquerade);
    },
  },
  {
    reason:
      'an endpoint of another node that dials itself through this one is not masqueraded, so that connection is lost: KUBE-LOOP-BACK has endpoints of this node only. In a cluster its own node serves it',
    instead: (decided) => {
      const { decision, route } = forwarding(decided) ?? {};
      if (!decision || !route || route.masquerade) return undefined;
      const targets = decision.targets.map(({ endpoint, masquerade }) => ({
        endpoint,
        masquerade: masquerade && isHairpin(decided, decision.servicePort.protocol, endpoint),
      }));
      const isSame = targets.every(
        ({ masquerade }, index) => masquerade === decision.targets[index]?.masquerade,
      );
      return isSame ? undefined : { targets, pool: route.pool };
    },
  },
];

/** Where it is forwarded, and whether the rules masquerade it. */
function forwarding({ decision, plan, packet, host }: Decided) {
  if (decision.verdict !== 'forward') return undefined;
  const route = decision.frontend.routes[classifySource(plan.view.localDetector, packet, host)];
  if (route.verdict !== 'forward') return undefined;
  return { decision, route, masquerade: masqueradesNode(decision, plan, packet) ?? route.masquerade };
}

function hasServicePort(plan: Plan, address: Ip): boolean {
  for (const _ of plan.portsAt(address)) return true;
  return false;
}

/** Whether the rules masquerade a packet of the node's own; `undefined`: it is another's. */
function masqueradesNode(
  { frontend, servicePort }: FoundFrontend,
  { view }: Plan,
  packet: Packet,
): boolean | undefined {
  const { inInterface, source } = packet;
  if (inInterface !== undefined) return undefined;
  if (isLoopback(source)) return false;
  // The client's address is kept, and here that is the node's own.
  if (frontend.kind === 'nodePort') return !servicePort.preservesClientIP;
  // Without a choice of its own it dials a service address from that address, which no endpoint could answer.
  if (frontend.kind !== 'clusterIP' || view.masqueradeAll || source === view.nodeIp) return true;
  const { localDetector } = view;
  return localDetector.kind !== 'none' && classifySource(localDetector, packet, NOBODY) !== 'pod';
}

const NOBODY: Host = { addresses: [] };

function targetsIn(
  decided: Decided,
  { servicePort: { pools, protocol } }: FoundFrontend,
  pool: PoolName,
  isMasqueraded: boolean,
): Instead {
  const targets = (pools[pool] ?? []).map((endpoint) => {
    return { endpoint, masquerade: isMasqueraded || isHairpin(decided, protocol, endpoint) };
  });
  return { targets, pool };
}

/** KUBE-LOOP-BACK has endpoints of this node. */
function isHairpin({ plan, packet }: Decided, protocol: Protocol, endpoint: Endpoint): boolean {
  return endpoint.ip === packet.source && isLocalEndpoint(plan, protocol, endpoint);
}
