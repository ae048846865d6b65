/**
 * From a service port's part of the plan to virtual servers and sets.
 *
 * A virtual server has one list of endpoints for every client, where the plan may have two: one for clients outside
 * and one for pods and the node. Clients outside come first, because what they may not have is a matter of policy and
 * what pods get instead is a matter of taste; `docs/ipvs.md` says what follows from it.
 */
import { type Cidr, type Family, hostPort, type Ip, parseCidr, prefixOf } from '../../../model/ip.ts';
import { answersNodePorts } from '../../../plan/decide.ts';
import type { Frontend, Plan, Routes, ServicePortPlan } from '../../../plan/types.ts';
import type { SetEntry, SetId } from './sets.ts';
import type { Protocol } from '../../../model/objects.ts';

/** Everything besides the plan that virtual servers depend on. */
export interface VirtualServerOptions {
  readonly family: Family;
  readonly scheduler: string;
  /** Where node ports answer. */
  readonly nodePortIps: readonly Ip[];
  /** The node's own addresses, which need no device of ours; it would take them away again one day. */
  readonly nodeIps: readonly Ip[];
}

export const DEFAULT_SCHEDULER = 'rr';

export const PERSISTENT = 0x1;
/** For the scheduler mh: the client's port counts too, else all of a client's connections meet the same endpoint. */
export const MH_PORT = 0x10;

/** `nodeIps`: without those of our device. */
export function virtualServerOptions(
  { family, view }: Pick<Plan, 'family' | 'view'>,
  scheduler: string,
  nodeIps: readonly Ip[],
): VirtualServerOptions {
  const ips = [...nodeIps].sort();
  const nodePortIps = ips.filter((ip) => answersNodePorts(view.nodePorts, ip));
  return { family, scheduler, nodeIps: ips, nodePortIps };
}

export function compileVirtualServers(port: ServicePortPlan, options: VirtualServerOptions): IpvsFragment {
  const { protocol, preservesClientIP, affinitySeconds, healthCheckNodePort } = port;
  const { scheduler, family, nodeIps, nodePortIps } = options;
  const members: Member[] = [];
  const servers: VirtualServer[] = [];
  // Every frontend of a service port has the same allowed sources.
  const hosts = new Set(port.frontends.find(({ allowedSources }) => allowedSources)?.allowedSources?.hosts);

  const add = (set: SetId, entry: SetEntry): void => void members.push({ set, entry });
  const addTriple = (set: SetId, ip: Ip, number: number): void =>
    add(set, { type: 'hash:ip,port,ip', ip, protocol, port: number, secondIp: ip });
  const serve = ({ routes }: Frontend, key: ServerKey, rank: VirtualServer['rank']): void =>
    void servers.push({
      ...key,
      scheduler,
      flags: (affinitySeconds === undefined ? 0 : PERSISTENT) | (scheduler === 'mh' ? MH_PORT : 0),
      timeout: affinitySeconds ?? 0,
      clientPrefix: family === 'IPv4' ? 32 : 128,
      destinations: destinationsOf(routes, port),
      rank,
      servicePort: port.name,
      ...dropEntryOf(routes, { type: 'hash:ip,port', ...key }),
    });

  for (const { ip, port: number } of port.localEndpoints ?? []) addTriple('KUBE-LOOP-BACK', ip, number);
  for (const frontend of port.frontends) {
    const { address: ip, port: number, allowedSources } = frontend;
    if (ip === undefined) {
      const [all, local] = NODE_PORT_SETS[protocol];
      for (const set of preservesClientIP ? [all, local] : [all])
        if (protocol !== 'SCTP') add(set, { type: 'bitmap:port', port: number });
        else
          for (const each of nodePortIps)
            add(set, { type: 'hash:ip,port', ip: each, protocol, port: number });
      for (const each of nodePortIps) serve(frontend, { protocol, ip: each, port: number }, 1);
      continue;
    }
    const key = { protocol, ip, port: number };
    for (const set of setsOf(frontend, port)) add(set, { type: 'hash:ip,port', ...key });
    if (frontend.kind === 'loadBalancerIP' && allowedSources) {
      add('KUBE-LOAD-BALANCER-FW', { type: 'hash:ip,port', ...key });
      for (const net of allowedSources.ranges.flatMap(withoutEmptyPrefix))
        add('KUBE-LOAD-BALANCER-SOURCE-CIDR', { type: 'hash:ip,port,net', ...key, net });
      if (hosts.has(ip)) addTriple('KUBE-LOAD-BALANCER-SOURCE-IP', ip, number);
    }
    serve(frontend, key, 0);
    if (!nodeIps.includes(ip)) add('KUBE-IPVS-IPS', { type: 'hash:ip', ip });
  }
  if (healthCheckNodePort !== 0)
    add('KUBE-HEALTH-CHECK-NODE-PORT', { type: 'bitmap:port', port: healthCheckNodePort });
  return { members, servers };
}

function destinationsOf({ outside, pod, node }: Routes, { pools }: ServicePortPlan): readonly Destination[] {
  const route = [outside, pod, node].find((each) => each.verdict === 'forward');
  return route?.verdict === 'forward' ? (pools[route.pool] ?? []) : [];
}

/** Of all node ports, and of those whose clients keep their address. */
export const NODE_PORT_SETS: Readonly<Record<Protocol, readonly [all: SetId, local: SetId]>> = {
  TCP: ['KUBE-NODE-PORT-TCP', 'KUBE-NODE-PORT-LOCAL-TCP'],
  UDP: ['KUBE-NODE-PORT-UDP', 'KUBE-NODE-PORT-LOCAL-UDP'],
  SCTP: ['KUBE-NODE-PORT-SCTP-HASH', 'KUBE-NODE-PORT-LOCAL-SCTP-HASH'],
};

/** In which sets the rules look an address up that clients dial. */
function setsOf({ kind }: Frontend, { preservesClientIP }: ServicePortPlan): readonly SetId[] {
  switch (kind) {
    case 'clusterIP':
      return ['KUBE-CLUSTER-IP'];
    case 'externalIP':
      return [preservesClientIP ? 'KUBE-EXTERNAL-IP-LOCAL' : 'KUBE-EXTERNAL-IP'];
    case 'loadBalancerIP':
      return preservesClientIP ? ['KUBE-LOAD-BALANCER', 'KUBE-LOAD-BALANCER-LOCAL'] : ['KUBE-LOAD-BALANCER'];
    case 'nodePort':
      return [];
  }
}

function dropEntryOf({ outside, pod, node }: Routes, entry: SetEntry): Pick<VirtualServer, 'dropEntry'> {
  if (outside.verdict !== 'drop') return {};
  const isForAll = pod.verdict === 'drop' && node.verdict === 'drop';
  return { dropEntry: { set: isForAll ? 'KUBE-NO-LOCAL' : 'KUBE-NO-LOCAL-OUTSIDE', entry } };
}

/** The kernel's sets refuse a network of no bits, so "everybody" is written in two halves. */
function withoutEmptyPrefix(net: Cidr): readonly Cidr[] {
  if (prefixOf(net) !== 0) return [net];
  return HALVES[net.includes(':') ? 'IPv6' : 'IPv4'];
}

const HALVES: Readonly<Record<Family, readonly Cidr[]>> = {
  IPv4: ['0.0.0.0/1', '128.0.0.0/1'].flatMap((text) => parseCidr(text) ?? []),
  IPv6: ['::/1', '8000::/1'].flatMap((text) => parseCidr(text) ?? []),
};

export interface ServerKey {
  readonly protocol: Protocol;
  readonly ip: Ip;
  readonly port: number;
}

export interface VirtualServer extends ServerKey {
  readonly scheduler: string;
  readonly flags: number;
  /** Of persistence, in seconds. */
  readonly timeout: number;
  /** How much of a client's address counts for persistence. */
  readonly clientPrefix: number;
  readonly destinations: readonly Destination[];
  /** 0: an address that a service names. It beats a node port of the same number on that address, which has 1. */
  readonly rank: 0 | 1;
  /** Of which service port: `namespace/name:port`. */
  readonly servicePort: string;
  /** By it rules drop what the policy keeps from endpoints elsewhere; there while this server is. */
  readonly dropEntry?: Member;
}

export interface Destination {
  readonly ip: Ip;
  readonly port: number;
  /** `10.0.0.1:80` */
  readonly key: string;
}

export interface Member {
  readonly set: SetId;
  readonly entry: SetEntry;
}

/** Of one service port. The device has the addresses of the set `ipvsIPs`. */
export interface IpvsFragment {
  readonly members: readonly Member[];
  readonly servers: readonly VirtualServer[];
}

/** `TCP 10.96.0.1:443` */
export function serverKey({ protocol, ip, port }: ServerKey): string {
  return `${protocol} ${hostPort(ip, port)}`;
}
