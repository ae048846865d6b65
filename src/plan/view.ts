/** From configuration and the Node object to what the plan has to know of this node. */
import {
  type Cidr,
  cidrContains,
  type Family,
  familyOf,
  hostCidr,
  type Ip,
  isLoopback,
  LOOPBACK,
  prefixOf,
} from '../model/ip.ts';
import type { EndpointSlice, Node, ObjectKey, Protocol } from '../model/objects.ts';
import type { LocalTrafficDetector, NodePortAddresses, NodeView } from './types.ts';

export interface ViewSettings {
  readonly nodeName: string;
  /** An address that overrides the node's own. */
  readonly bindAddress: Ip | undefined;
  readonly detectLocal: DetectLocal;
  readonly masqueradeAll: boolean;
  readonly nodePortAddresses: readonly Cidr[] | 'primary';
  readonly localhostNodePorts: boolean;
  /** `false`: external IPs of services are not served. */
  readonly allowExternalIPs?: boolean;
  /** The mode makes a service's addresses the node's own, at every port. */
  readonly bindsAddresses?: boolean;
  /** Where the API server is dialled. */
  readonly apiServers?: readonly SocketAddress[];
}

export type DetectLocal =
  | { readonly mode: 'ClusterCIDR'; readonly cidrs: readonly Cidr[] }
  | { readonly mode: 'NodeCIDR' }
  | { readonly mode: 'BridgeInterface'; readonly name: string }
  | { readonly mode: 'InterfaceNamePrefix'; readonly prefix: string };

/** `apiServers`: besides those of the settings. */
export function nodeView(
  settings: ViewSettings,
  node: Node | undefined,
  family: Family,
  apiServers: readonly SocketAddress[] = [],
): NodeView {
  const nodeIp = nodeIpOf(settings, node, family);
  const nodeIps = [nodeIp, ...(node?.ips ?? [])];
  const servers = [...(settings.apiServers ?? []), ...apiServers];
  return {
    nodeName: settings.nodeName,
    zone: node?.zone,
    nodeIp,
    localDetector: localDetector(settings.detectLocal, node, family),
    masqueradeAll: settings.masqueradeAll,
    allowExternalIPs: settings.allowExternalIPs ?? true,
    nodePorts: nodePortAddresses(settings, nodeIp, family),
    ...(settings.bindsAddresses === true && { reserved: reservedAddresses(servers, nodeIps, family) }),
  };
}

function nodeIpOf(settings: ViewSettings, node: Node | undefined, family: Family): Ip {
  const { bindAddress } = settings;
  if (bindAddress !== undefined && familyOf(bindAddress) === family && !isUnspecified(bindAddress))
    return bindAddress;
  return node?.ips.find((ip) => familyOf(ip) === family) ?? LOOPBACK[family];
}

function localDetector(
  detectLocal: DetectLocal,
  node: Node | undefined,
  family: Family,
): LocalTrafficDetector {
  switch (detectLocal.mode) {
    case 'ClusterCIDR':
      return cidrDetector(detectLocal.cidrs, family);
    case 'NodeCIDR':
      return cidrDetector(node?.podCIDRs ?? [], family);
    case 'BridgeInterface':
      return { kind: 'interface', name: detectLocal.name };
    case 'InterfaceNamePrefix':
      return { kind: 'interfacePrefix', prefix: detectLocal.prefix };
  }
}

function cidrDetector(cidrs: readonly Cidr[], family: Family): LocalTrafficDetector {
  const cidr = cidrs.find((other) => familyOf(other) === family);
  return cidr === undefined ? { kind: 'none' } : { kind: 'cidr', cidr };
}

/** With `primary` node ports never answer on loopback addresses, also where no Node says which the primary address is. */
function nodePortAddresses(settings: ViewSettings, nodeIp: Ip, family: Family): NodePortAddresses {
  const { nodePortAddresses: wanted } = settings;
  if (wanted === 'primary' && isLoopback(nodeIp)) return { ranges: 'all', loopback: false };
  const configured =
    wanted === 'primary' ? [hostCidr(nodeIp)] : wanted.filter((cidr) => familyOf(cidr) === family);
  // A family without any CIDR answers everywhere, even where the other family is restricted.
  const matchesAll = configured.length === 0 || configured.some((cidr) => prefixOf(cidr) === 0);
  const ranges = matchesAll ? 'all' : configured;
  return { ranges, loopback: settings.localhostNodePorts && family === 'IPv4' && containsLoopback(ranges) };
}

function containsLoopback(ranges: 'all' | readonly Cidr[]): boolean {
  if (ranges === 'all') return true;
  return ranges.some((cidr) => cidr.startsWith('127.') || cidrContains(cidr, LOOPBACK.IPv4));
}

function isUnspecified(ip: Ip): boolean {
  return ip === '0.0.0.0' || ip === '::';
}

/**
 * Addresses that no Service may claim from outside: those at which the API server is reached.
 *
 * A mode that binds a service's addresses to the node (IPVS) makes each of them the node's own, at every port. If one is the
 * API server's, this node has cut itself off: it cannot even learn that the Service is gone, and nor can whoever starts next.
 */
export interface SocketAddress {
  readonly ip: Ip;
  readonly port: number;
}

export interface ReservedAddress {
  readonly ip: Ip;
  /** `undefined`: every port. The node's own addresses are never bound, so there it is one port. */
  readonly tcpPort: number | undefined;
}

function reservedAddresses(
  apiServers: readonly SocketAddress[],
  nodeIps: readonly Ip[],
  family: Family,
): readonly ReservedAddress[] {
  return apiServers
    .filter(({ ip }) => familyOf(ip) === family)
    .map(({ ip, port }) => ({ ip, tcpPort: nodeIps.includes(ip) ? port : undefined }));
}

export function isReserved(
  reserved: readonly ReservedAddress[],
  ip: Ip,
  protocol: Protocol,
  port: number,
): boolean {
  return reserved.some(
    (other) =>
      other.ip === ip && (other.tcpPort === undefined || (protocol === 'TCP' && other.tcpPort === port)),
  );
}

/** The endpoints of the Service `default/kubernetes`: the API servers themselves, whatever address they are dialled at. */
export class ApiServerEndpoints {
  readonly #slices = new Map<ObjectKey, readonly SocketAddress[]>();
  #all: readonly SocketAddress[] = [];

  get all(): readonly SocketAddress[] {
    return this.#all;
  }

  update(key: ObjectKey, slice: EndpointSlice | undefined): void {
    const isTheirs = slice?.namespace === 'default' && slice.service === 'kubernetes';
    if (!isTheirs && !this.#slices.has(key)) return;
    if (isTheirs) this.#slices.set(key, addressesOf(slice));
    else this.#slices.delete(key);
    this.#all = [...this.#slices.values()].flat();
  }
}

function addressesOf({ endpoints, ports }: EndpointSlice): readonly SocketAddress[] {
  return endpoints.flatMap(({ ip }) => ports.map(({ port }) => ({ ip, port })));
}
