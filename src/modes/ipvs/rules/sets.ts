/**
 * The sets that the IPVS mode's rules match. They are also the memory of a restarted process: a virtual server is ours
 * when one of these sets names its address and port.
 */
import type { Cidr, Family, Ip } from '../../../model/ip.ts';
import type { IpvsEdit } from './client.ts';
import type { ServerKey } from './compile.ts';

export type SetEntry =
  | { readonly type: 'hash:ip'; readonly ip: Ip }
  | ({ readonly type: 'hash:ip,port' } & ServerKey)
  | ({ readonly type: 'hash:ip,port,ip'; readonly secondIp: Ip } & ServerKey)
  | ({ readonly type: 'hash:ip,port,net'; readonly net: Cidr } & ServerKey)
  | { readonly type: 'bitmap:port'; readonly port: number };

export type SetType = SetEntry['type'];

/**
 * The sets with their names in IPv4, and the comments of the rules that match them. Entries are deleted in this order and
 * added in the reverse one: what refuses or drops packets comes last and goes first. kube-proxy has no KUBE-NO-LOCAL: its
 * IPVS mode sends to endpoints elsewhere what should not leave the node.
 */
const COMMENTS = {
  'hash:ip': { 'KUBE-IPVS-IPS': 'Addresses on the ipvs interface' },
  'hash:ip,port': {
    'KUBE-NO-LOCAL': 'Kubernetes service ip + port without local endpoints',
    'KUBE-NO-LOCAL-OUTSIDE': 'Kubernetes service ip + port without local endpoints for clients outside',
    'KUBE-LOAD-BALANCER': 'Kubernetes service lb portal',
    'KUBE-LOAD-BALANCER-FW': 'Kubernetes service load balancer ip + port for load balancer with sourceRange',
    'KUBE-LOAD-BALANCER-LOCAL': 'Kubernetes service load balancer ip + port with externalTrafficPolicy=local',
    'KUBE-CLUSTER-IP': 'Kubernetes service cluster ip + port for masquerade purpose',
    'KUBE-EXTERNAL-IP': 'Kubernetes service external ip + port for masquerade and filter purpose',
    'KUBE-EXTERNAL-IP-LOCAL': 'Kubernetes service external ip + port with externalTrafficPolicy=local',
    'KUBE-NODE-PORT-SCTP-HASH':
      "Kubernetes nodeport SCTP port for masquerade purpose with type 'hash ip:port'",
    'KUBE-NODE-PORT-LOCAL-SCTP-HASH':
      "Kubernetes nodeport SCTP port with externalTrafficPolicy=local with type 'hash ip:port'",
  },
  'hash:ip,port,ip': {
    'KUBE-LOAD-BALANCER-SOURCE-IP':
      'Kubernetes service load balancer ip + port + source IP for packet filter purpose',
    'KUBE-LOOP-BACK': 'Kubernetes endpoints dst ip:port, source ip for solving hairpin purpose',
  },
  'hash:ip,port,net': {
    'KUBE-LOAD-BALANCER-SOURCE-CIDR':
      'Kubernetes service load balancer ip + port + source cidr for packet filter purpose',
  },
  'bitmap:port': {
    'KUBE-NODE-PORT-TCP': 'Kubernetes nodeport TCP port for masquerade purpose',
    'KUBE-NODE-PORT-LOCAL-TCP': 'Kubernetes nodeport TCP port with externalTrafficPolicy=local',
    'KUBE-NODE-PORT-UDP': 'Kubernetes nodeport UDP port for masquerade purpose',
    'KUBE-NODE-PORT-LOCAL-UDP': 'Kubernetes nodeport UDP port with externalTrafficPolicy=local',
    'KUBE-HEALTH-CHECK-NODE-PORT': 'Kubernetes health check node port',
  },
} as const satisfies Record<SetType, Record<string, string>>;

export type SetId = { [Type in SetType]: keyof (typeof COMMENTS)[Type] }[SetType];

export const IPSETS = Object.fromEntries(
  Object.entries(COMMENTS).flatMap(([type, sets]) =>
    Object.entries(sets).map(([id, comment]) => [id, { type, comment }]),
  ),
) as Readonly<Record<SetId, { readonly type: SetType; readonly comment: string }>>;
export const SET_IDS = Object.keys(IPSETS) as readonly SetId[];

/** The kernel's longest name is 31 bytes. */
const NAME_LENGTH = 31;

export function setName(id: SetId, family: Family): string {
  return family === 'IPv4' ? id : id.replace('KUBE-', 'KUBE-6-').slice(0, NAME_LENGTH);
}

/** Where a larger set is filled before it is swapped with one that has become too small. */
export function growingName(family: Family): string {
  return family === 'IPv4' ? 'KUBE-GROWING' : 'KUBE-6-GROWING';
}

/** As `ipset list` prints them: the network of one host has no prefix length. */
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
      return `${ipPortKey(entry)},${entry.net.replace(entry.ip.includes(':') ? /\/128$/ : /\/32$/, '')}`;
  }
}

function ipPortKey({ ip, protocol, port }: ServerKey): string {
  return `${ip},${protocol.toLowerCase()}:${port}`;
}

/*
 * The kernel fixes how many entries a set can have when the set is made. One that has become too small refuses an entry; the
 * comparison that follows makes it again in twice the size beside the old one, fills it, and swaps the two while rules go on
 * matching it.
 */

/** Enough for most; as large as kube-proxy's, so that its sets can be taken over. */
const USUAL_CAPACITY = 65_536;

export function capacityFor(size: number, capacity = USUAL_CAPACITY): number {
  let enough = Math.max(capacity, 1);
  while (enough < size) enough *= 2;
  return enough;
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
    { kind: 'createSet', set, type: IPSETS[id].type, capacity: capacityFor(entries.length, capacity) },
    ...entries.map((entry) => ({ kind: 'addEntry', set, entry }) as const),
    { kind: 'swapSets', set: setName(id, family), other: set },
    { kind: 'destroySet', set },
  ];
}
