/**
 * What the plan means: where a packet goes. Every mode is right when real packets do what this says.
 *
 * The packet is the first of a connection; what follows it goes the same way.
 */
import type { Endpoint } from '../model/endpointTracker.ts';
import { cidrContains, type Ip, isLoopback } from '../model/ip.ts';
import type { Protocol } from '../model/objects.ts';
import type {
  AllowedSources,
  FoundFrontend,
  NodePortAddresses,
  Plan,
  LocalTrafficDetector,
  Route,
  ServicePortPlan,
  SourceClass,
} from './types.ts';

export interface Packet {
  readonly source: Ip;
  readonly destination: Ip;
  readonly protocol: Protocol;
  readonly port: number;
  /** Where it came in; `undefined`: this node sent it. */
  readonly inInterface: string | undefined;
}

export interface Host {
  /** All addresses of this node, of every interface. */
  readonly addresses: readonly Ip[];
  /** From which it is taken to send, where a program chooses no address itself. */
  readonly nodeIp?: Ip | undefined;
}

export type Decision =
  /** One of these, each as likely as the others. */
  | (FoundFrontend & { readonly verdict: 'forward'; readonly targets: readonly ForwardTarget[] })
  | (FoundFrontend & { readonly verdict: 'reject'; readonly reason: 'no endpoints' })
  | (FoundFrontend & {
      readonly verdict: 'drop';
      readonly reason: 'no local endpoints' | 'source not allowed';
    })
  /** No frontend of ours: the packet goes where it would go without us. */
  | { readonly verdict: 'pass' };

export interface ForwardTarget {
  readonly endpoint: Endpoint;
  /** The endpoint sees this node's address instead of the client's. */
  readonly masquerade: boolean;
}

export function decide(plan: Plan, packet: Packet, host: Host): Decision {
  const found = findFrontend(plan, packet, host);
  if (!found) return { verdict: 'pass' };
  const { servicePort, frontend } = found;
  const route = frontend.routes[classifySource(plan.view.localDetector, packet, host)];

  if (route.verdict === 'reject') return { ...found, verdict: 'reject', reason: 'no endpoints' };
  if (!isAllowed(frontend.allowedSources, packet.source)) {
    return { ...found, verdict: 'drop', reason: 'source not allowed' };
  }
  if (route.verdict === 'drop') return { ...found, verdict: 'drop', reason: 'no local endpoints' };

  return { ...found, verdict: 'forward', targets: targetsOf(servicePort, route, packet, host) };
}

/** Where a route leads a packet. */
export function targetsOf(
  { pools }: Pick<ServicePortPlan, 'pools'>,
  { pool, masquerade }: Extract<Route, { readonly verdict: 'forward' }>,
  packet: Packet,
  host: Host,
): readonly ForwardTarget[] {
  return (pools[pool] ?? []).map((endpoint) => ({
    endpoint,
    // An endpoint that dials itself would otherwise answer itself directly, and not recognise the answer.
    masquerade: (masquerade || endpoint.ip === packet.source) && leaves(packet, endpoint, host),
  }));
}

/** What arrives for an endpoint in this node's own network goes no further, so nothing rewrites its source. */
function leaves(packet: Packet, endpoint: Endpoint, host: Host): boolean {
  return packet.inInterface === undefined || !isLocal(endpoint.ip, host);
}

function findFrontend(plan: Plan, packet: Packet, host: Host): FoundFrontend | undefined {
  const { destination, protocol, port } = packet;
  const byAddress = plan.find(destination, protocol, port);
  if (byAddress) return byAddress;
  if (!isLocal(destination, host) || !answersNodePorts(plan.view.nodePorts, destination)) return undefined;
  return plan.find(undefined, protocol, port);
}

export function classifySource(detector: LocalTrafficDetector, packet: Packet, host: Host): SourceClass {
  if (isFromPod(detector, packet)) return 'pod';
  return isLocal(packet.source, host) ? 'node' : 'outside';
}

function isFromPod(detector: LocalTrafficDetector, packet: Packet): boolean {
  switch (detector.kind) {
    case 'none':
      return false;
    case 'cidr':
      return cidrContains(detector.cidr, packet.source);
    case 'interface':
      return packet.inInterface === detector.name;
    case 'interfacePrefix':
      return packet.inInterface?.startsWith(detector.prefix) ?? false;
  }
}

export function isAllowed(allowed: AllowedSources | undefined, source: Ip): boolean {
  if (!allowed) return true;
  return allowed.hosts.includes(source) || allowed.ranges.some((range) => cidrContains(range, source));
}

export function isLocal(address: Ip, host: Host): boolean {
  return isLoopback(address) || hasAddress(host.addresses, address);
}

/** A node may have thousands of addresses, and each of a million affinity entries asks for one. */
const FEW = 8;
const addressSets = new WeakMap<readonly Ip[], ReadonlySet<Ip>>();

function hasAddress(addresses: readonly Ip[], address: Ip): boolean {
  if (addresses.length <= FEW) return addresses.includes(address);
  let known = addressSets.get(addresses);
  if (!known) addressSets.set(addresses, (known = new Set(addresses)));
  return known.has(address);
}

/** Whether node ports answer on this address, which is one of the node's. */
export function answersNodePorts(nodePorts: NodePortAddresses, address: Ip): boolean {
  if (isLoopback(address) && !nodePorts.loopback) return false;
  return nodePorts.ranges === 'all' || nodePorts.ranges.some((range) => cidrContains(range, address));
}
