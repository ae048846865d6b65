/**
 * The sets that the IPVS mode's rules match. They are also the memory of a restarted process: a virtual server is ours
 * when one of these sets names its address and port.
 */
import { type Cidr, type Family, hostCidr, type Ip, parseCidr, parseIp } from '../../../model/ip.ts';
import { PROTOCOLS } from '../../../model/objects.ts';
import type { IpvsEdit } from './client.ts';
import type { ServerKey } from './compile.ts';

export type SetEntry =
  | { readonly type: 'hash:ip'; readonly ip: Ip }
  | ({ readonly type: 'hash:ip,port' } & ServerKey)
  | ({ readonly type: 'hash:ip,port,ip'; readonly secondIp: Ip } & ServerKey)
  | ({ readonly type: 'hash:ip,port,net'; readonly net: Cidr } & ServerKey)
  | { readonly type: 'bitmap:port'; readonly port: number };

export type SetType = SetEntry['type'];

/** `name` is that of IPv4; `comment` stands in the rules that match the set. */
function ipset(type: SetType, name: string, comment: string) {
  return { type, name, comment };
}

/** Entries are deleted in this order and added in the reverse one: what refuses or drops packets comes last and goes first. */
export const IPSETS = {
  ipvsIPs: ipset('hash:ip', 'KUBE-IPVS-IPS', 'Addresses on the ipvs interface'),
  /** kube-proxy has no such set: its IPVS mode sends to endpoints elsewhere what should not leave the node. */
  noLocal: ipset('hash:ip,port', 'KUBE-NO-LOCAL', 'Kubernetes service ip + port without local endpoints'),
  noLocalOutside: ipset(
    'hash:ip,port',
    'KUBE-NO-LOCAL-OUTSIDE',
    'Kubernetes service ip + port without local endpoints for clients outside',
  ),
  loadBalancer: ipset('hash:ip,port', 'KUBE-LOAD-BALANCER', 'Kubernetes service lb portal'),
  loadBalancerFirewall: ipset(
    'hash:ip,port',
    'KUBE-LOAD-BALANCER-FW',
    'Kubernetes service load balancer ip + port for load balancer with sourceRange',
  ),
  loadBalancerLocal: ipset(
    'hash:ip,port',
    'KUBE-LOAD-BALANCER-LOCAL',
    'Kubernetes service load balancer ip + port with externalTrafficPolicy=local',
  ),
  loadBalancerSourceIP: ipset(
    'hash:ip,port,ip',
    'KUBE-LOAD-BALANCER-SOURCE-IP',
    'Kubernetes service load balancer ip + port + source IP for packet filter purpose',
  ),
  loadBalancerSourceCidr: ipset(
    'hash:ip,port,net',
    'KUBE-LOAD-BALANCER-SOURCE-CIDR',
    'Kubernetes service load balancer ip + port + source cidr for packet filter purpose',
  ),
  clusterIP: ipset(
    'hash:ip,port',
    'KUBE-CLUSTER-IP',
    'Kubernetes service cluster ip + port for masquerade purpose',
  ),
  externalIP: ipset(
    'hash:ip,port',
    'KUBE-EXTERNAL-IP',
    'Kubernetes service external ip + port for masquerade and filter purpose',
  ),
  externalIPLocal: ipset(
    'hash:ip,port',
    'KUBE-EXTERNAL-IP-LOCAL',
    'Kubernetes service external ip + port with externalTrafficPolicy=local',
  ),
  nodePortTcp: ipset(
    'bitmap:port',
    'KUBE-NODE-PORT-TCP',
    'Kubernetes nodeport TCP port for masquerade purpose',
  ),
  nodePortLocalTcp: ipset(
    'bitmap:port',
    'KUBE-NODE-PORT-LOCAL-TCP',
    'Kubernetes nodeport TCP port with externalTrafficPolicy=local',
  ),
  nodePortUdp: ipset(
    'bitmap:port',
    'KUBE-NODE-PORT-UDP',
    'Kubernetes nodeport UDP port for masquerade purpose',
  ),
  nodePortLocalUdp: ipset(
    'bitmap:port',
    'KUBE-NODE-PORT-LOCAL-UDP',
    'Kubernetes nodeport UDP port with externalTrafficPolicy=local',
  ),
  nodePortSctp: ipset(
    'hash:ip,port',
    'KUBE-NODE-PORT-SCTP-HASH',
    "Kubernetes nodeport SCTP port for masquerade purpose with type 'hash ip:port'",
  ),
  nodePortLocalSctp: ipset(
    'hash:ip,port',
    'KUBE-NODE-PORT-LOCAL-SCTP-HASH',
    "Kubernetes nodeport SCTP port with externalTrafficPolicy=local with type 'hash ip:port'",
  ),
  healthCheckNodePort: ipset(
    'bitmap:port',
    'KUBE-HEALTH-CHECK-NODE-PORT',
    'Kubernetes health check node port',
  ),
  loopBack: ipset(
    'hash:ip,port,ip',
    'KUBE-LOOP-BACK',
    'Kubernetes endpoints dst ip:port, source ip for solving hairpin purpose',
  ),
};

export type SetId = keyof typeof IPSETS;
export const SET_IDS = Object.keys(IPSETS) as readonly SetId[];

/** The kernel's longest name is 31 bytes. */
const NAME_LENGTH = 31;

export function setName(id: SetId, family: Family): string {
  const { name } = IPSETS[id];
  return family === 'IPv4' ? name : name.replace('KUBE-', 'KUBE-6-').slice(0, NAME_LENGTH);
}

/** Where a larger set is filled before it is swapped with one that has become too small. */
export function growingName(family: Family): string {
  return family === 'IPv4' ? 'KUBE-GROWING' : 'KUBE-6-GROWING';
}

/** Equal for equal entries, and as `ipset list` prints them: the network of one host has no prefix length. */
export function entryKey(entry: SetEntry): string {
  switch (entry.type) {
    case 'hash:ip':
      return entry.ip;
    case 'bitmap:port':
      return String(entry.port);
    case 'hash:ip,port':
      return ipPortKey(entry);
    case 'hash:ip,port,ip':
      return `${ipPortKey(entry)},${entry.secondIp}`;
    case 'hash:ip,port,net':
      return `${ipPortKey(entry)},${entry.net.replace(/\/(?:32|128)$/, wholeHost(entry.ip))}`;
  }
}

/** What `entryKey` prints. `undefined`: it is none, or of a type that we do not have. */
export function parseEntry(type: string, text: string): SetEntry | undefined {
  if (type === 'bitmap:port') {
    const port = portIn(text);
    return port === undefined ? undefined : { type, port };
  }
  const [first = '', second = '', third = '', ...more] = text.split(',');
  const ip = parseIp(first);
  if (ip === undefined || more.length > 0) return undefined;
  if (type === 'hash:ip') return second === '' ? { type, ip } : undefined;
  const [name = '', digits = ''] = second.split(':');
  const protocol = PROTOCOLS.find((each) => each.toLowerCase() === name);
  const port = portIn(digits);
  if (protocol === undefined || port === undefined) return undefined;
  const key = { ip, protocol, port };
  if (type === 'hash:ip,port') return third === '' ? { type, ...key } : undefined;
  const host = parseIp(third);
  if (type === 'hash:ip,port,ip') return host === undefined ? undefined : { type, ...key, secondIp: host };
  const net = host === undefined ? parseCidr(third) : hostCidr(host);
  return type === 'hash:ip,port,net' && net !== undefined ? { type, ...key, net } : undefined;
}

const LAST_PORT = 65_535;

function portIn(text: string): number | undefined {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : undefined;
  return port !== undefined && port <= LAST_PORT ? port : undefined;
}

/** An IPv6 network of 32 bits is no single host. */
function wholeHost(ip: Ip): (prefix: string) => string {
  return (prefix) => (prefix === (ip.includes(':') ? '/128' : '/32') ? '' : prefix);
}

function ipPortKey({ ip, protocol, port }: ServerKey): string {
  return `${ip},${protocol.toLowerCase()}:${port}`;
}

/*
 * The kernel fixes how many entries a set can have when the set is made. One that has become too small is made again in twice
 * the size beside the old one, filled, and swapped with it while rules go on matching it.
 */

/** Enough for most; as large as kube-proxy's, so that its sets can be taken over. */
const USUAL_CAPACITY = 65_536;

export function capacityFor(size: number, capacity = USUAL_CAPACITY): number {
  let enough = Math.max(capacity, 1);
  while (enough < size) enough *= 2;
  return enough;
}

export function createSet(id: SetId, family: Family, capacity: number): IpvsEdit {
  return { kind: 'createSet', set: setName(id, family), type: IPSETS[id].type, capacity };
}

/** `entries`: all that it has to have. */
export function growSet(
  id: SetId,
  family: Family,
  entries: readonly SetEntry[],
  capacity: number,
): readonly IpvsEdit[] {
  const set = growingName(family);
  return [
    { kind: 'destroySet', set },
    { kind: 'createSet', set, type: IPSETS[id].type, capacity },
    ...entries.map((entry): IpvsEdit => ({ kind: 'addEntry', set, entry })),
    { kind: 'swapSets', set: setName(id, family), other: set },
    { kind: 'destroySet', set },
  ];
}
