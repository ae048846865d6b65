/** Whether an endpoint sees the client's address or this node's, and why. */
import { type ForwardTarget, type Host, isLocal, type Packet } from '../plan/decide.ts';
import type { Frontend, NodeView, Route, SourceClass } from '../plan/types.ts';

interface Masqueraded {
  readonly frontend: Frontend;
  readonly view: NodeView;
  readonly packet: Packet;
  readonly host: Host;
  readonly sourceClass: SourceClass;
  /** Clients outside keep their address. */
  readonly preservesClientIP: boolean;
  /** Where the mode does something else than planned. */
  readonly deviation: string | undefined;
}

export function masqueradeReason(at: Masqueraded, target: ForwardTarget): string {
  const { frontend, packet, sourceClass, deviation } = at;
  const route = frontend.routes[sourceClass];
  const isPlanned = route.verdict === 'forward' && route.masquerade;
  const isHairpin = target.endpoint.ip === packet.source;
  if (target.masquerade) {
    if (isPlanned) return plannedReason(at);
    if (isHairpin) return 'it dials itself (hairpin), and would answer itself directly';
    return deviation ?? plannedReason({ ...at, preservesClientIP: false });
  }
  if (isPlanned || isHairpin) {
    if (packet.inInterface !== undefined && isLocal(target.endpoint.ip, at.host))
      return 'it is in the network of this node, where nothing rewrites the source';
    return deviation ?? '';
  }
  return keptReason(at, route);
}

function plannedReason({ frontend, view, sourceClass, preservesClientIP }: Masqueraded): string {
  if (frontend.kind !== 'clusterIP')
    return preservesClientIP
      ? 'sent by this node itself: replies have to come back to it'
      : 'externalTrafficPolicy: Cluster: replies have to come back through this node';
  if (view.masqueradeAll) return '--masquerade-all';
  return sourceClass === 'node'
    ? 'sent by this node, which is outside the pod network'
    : 'the source is outside the pod network';
}

function keptReason({ frontend, view, sourceClass }: Masqueraded, route: Route): string {
  if (frontend.kind !== 'clusterIP') {
    const isPod = sourceClass === 'pod';
    return `externalTrafficPolicy: Local keeps the ${isPod ? "pod's" : "client's"} address`;
  }
  if (route.verdict === 'forward' && view.localDetector.kind === 'none')
    return 'no pod network is configured, so no source is masqueraded';
  return 'the source is in the pod network';
}
