/**
 * The sets that the IPVS mode's rules match. They are also the memory of a restarted process: a virtual server is ours
 * when one of these sets names its address and port.
 */
import { type Cidr, type Family, hostCidr, type Ip, parseCidr, parseIp } from '../../../model/ip.ts';
import { PROTOCOLS } from '../../../model/objects.ts';
import type { IpvsEdit } from './client.ts';
import type { ServerKey } from './compile.ts';
import type { DesiredState } from './desiredState.ts';

export type SetEntry =
  | { readonly type: 'hash:ip'; readonly ip: Ip }
  | ({ readonly type: 'hash:ip,port' } & ServerKey)
  | ({ readonly type: 'hash:ip,port,ip'; readonly secondIp: Ip } & ServerKey)
  | ({ readonly type: 'hash:ip,port,net'; readonly net: Cidr } & ServerKey)
  | { readonly type: 'bitmap:port'; readonly port: number };

export type SetType = SetEntry['type'];

interface SetInfo {
  /** Of IPv4. */
  readonly name: string;
  readonly type: SetType;
  /** Stands in the rules that match it. */
  readonly comment: string;
}

export const IPSETS = {
  loopBack: {
    name: 'KUBE-LOOP-BACK',
    type: 'hash:ip,port,ip',
    comment: 'Kubernetes endpoints dst ip:port, source ip for solving hairpin purpose',
  },
  clusterIP: {
    name: 'KUBE-CLUSTER-IP',
    type: 'hash:ip,port',
    comment: 'Kubernetes service cluster ip + port for masquerade purpose',
  },
  externalIP: {
    name: 'KUBE-EXTERNAL-IP',
    type: 'hash:ip,port',
    comment: 'Kubernetes service external ip + port for masquerade and filter purpose',
  },
  externalIPLocal: {
    name: 'KUBE-EXTERNAL-IP-LOCAL',
    type: 'hash:ip,port',
    comment: 'Kubernetes service external ip + port with externalTrafficPolicy=local',
  },
  loadBalancer: {
    name: 'KUBE-LOAD-BALANCER',
    type: 'hash:ip,port',
    comment: 'Kubernetes service lb portal',
  },
  loadBalancerFirewall: {
    name: 'KUBE-LOAD-BALANCER-FW',
    type: 'hash:ip,port',
    comment: 'Kubernetes service load balancer ip + port for load balancer with sourceRange',
  },
  loadBalancerLocal: {
    name: 'KUBE-LOAD-BALANCER-LOCAL',
    type: 'hash:ip,port',
    comment: 'Kubernetes service load balancer ip + port with externalTrafficPolicy=local',
  },
  loadBalancerSourceIP: {
    name: 'KUBE-LOAD-BALANCER-SOURCE-IP',
    type: 'hash:ip,port,ip',
    comment: 'Kubernetes service load balancer ip + port + source IP for packet filter purpose',
  },
  loadBalancerSourceCidr: {
    name: 'KUBE-LOAD-BALANCER-SOURCE-CIDR',
    type: 'hash:ip,port,net',
    comment: 'Kubernetes service load balancer ip + port + source cidr for packet filter purpose',
  },
  nodePortTcp: {
    name: 'KUBE-NODE-PORT-TCP',
    type: 'bitmap:port',
    comment: 'Kubernetes nodeport TCP port for masquerade purpose',
  },
  nodePortLocalTcp: {
    name: 'KUBE-NODE-PORT-LOCAL-TCP',
    type: 'bitmap:port',
    comment: 'Kubernetes nodeport TCP port with externalTrafficPolicy=local',
  },
  nodePortUdp: {
    name: 'KUBE-NODE-PORT-UDP',
    type: 'bitmap:port',
    comment: 'Kubernetes nodeport UDP port for masquerade purpose',
  },
  nodePortLocalUdp: {
    name: 'KUBE-NODE-PORT-LOCAL-UDP',
    type: 'bitmap:port',
    comment: 'Kubernetes nodeport UDP port with externalTrafficPolicy=local',
  },
  nodePortSctp: {
    name: 'KUBE-NODE-PORT-SCTP-HASH',
    type: 'hash:ip,port',
    comment: "Kubernetes nodeport SCTP port for masquerade purpose with type 'hash ip:port'",
  },
  nodePortLocalSctp: {
    name: 'KUBE-NODE-PORT-LOCAL-SCTP-HASH',
    type: 'hash:ip,port',
    comment: "Kubernetes nodeport SCTP port with externalTrafficPolicy=local with type 'hash ip:port'",
  },
  healthCheckNodePort: {
    name: 'KUBE-HEALTH-CHECK-NODE-PORT',
    type: 'bitmap:port',
    comment: 'Kubernetes health check node port',
  },
  ipvsIPs: { name: 'KUBE-IPVS-IPS', type: 'hash:ip', comment: 'Addresses on the ipvs interface' },
  /** kube-proxy has no such set: its IPVS mode sends to endpoints elsewhere what should not leave the node. */
  noLocal: {
    name: 'KUBE-NO-LOCAL',
    type: 'hash:ip,port',
    comment: 'Kubernetes service ip + port without local endpoints',
  },
  noLocalOutside: {
    name: 'KUBE-NO-LOCAL-OUTSIDE',
    type: 'hash:ip,port',
    comment: 'Kubernetes service ip + port without local endpoints for clients outside',
  },
} as const satisfies Readonly<Record<string, SetInfo>>;

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
 * How many entries each set can have. The kernel fixes that when a set is made; one that has become too small is created
 * again in twice the size beside the old one, filled, and swapped with it while rules go on matching it.
 */

/** Entries that go last. */
type Leaving = ReadonlyMap<SetId, readonly SetEntry[]>;

/** Enough for most; as large as kube-proxy's, so that its sets can be taken over. */
const USUAL_CAPACITY = 65_536;

export class SetCapacities {
  readonly #capacities: Map<SetId, number>;

  constructor(capacities: Map<SetId, number> = new Map()) {
    this.#capacities = capacities;
  }

  /** What has to be done so that every set can have all that the desired wants in it, beside what is to leave it. */
  makeFor(desired: DesiredState, family: Family, leaving: Leaving): readonly IpvsEdit[] {
    return SET_IDS.flatMap((id) => {
      if (desired.sizeOf(id) === 0) return [];
      const old = leaving.get(id) ?? [];
      const size = desired.sizeOf(id) + old.length;
      const capacity = this.#capacities.get(id);
      if (IPSETS[id].type === 'bitmap:port') return [];
      if (capacity !== undefined && size <= capacity) return [];
      const enough = capacityFor(size, capacity);
      this.#capacities.set(id, enough);
      if (capacity === undefined) return [create(id, family, enough)];
      const entries = [...desired.entriesOf(id)].map(([, entry]) => entry);
      return grow(id, family, [...entries, ...old], enough);
    });
  }
}

export function capacityFor(size: number, capacity = USUAL_CAPACITY): number {
  let enough = Math.max(capacity, 1);
  while (enough < size) enough *= 2;
  return enough;
}

export function create(id: SetId, family: Family, capacity: number): IpvsEdit {
  return { kind: 'createSet', set: setName(id, family), type: IPSETS[id].type, capacity };
}

function grow(
  id: SetId,
  family: Family,
  entries: readonly SetEntry[],
  capacity: number,
): readonly IpvsEdit[] {
  const set = growingName(family);
  const edits: IpvsEdit[] = [
    { kind: 'destroySet', set },
    { kind: 'createSet', set, type: IPSETS[id].type, capacity },
  ];
  for (const entry of entries) edits.push({ kind: 'addEntry', set, entry });
  edits.push({ kind: 'swapSets', set: setName(id, family), other: set }, { kind: 'destroySet', set });
  return edits;
}
