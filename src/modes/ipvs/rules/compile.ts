/**
 * From a service port's part of the plan to virtual servers and sets.
 *
 * A virtual server has one list of endpoints for every client, where the plan may have two: one for clients outside
 * and one for pods and the node. Clients outside come first, because what they may not have is a matter of policy and
 * what pods get instead is a matter of taste; `docs/ipvs.md` says what follows from it.
 */
import { type Cidr, type Family, hostPort, type Ip, parseCidr, prefixOf } from '../../../model/ip.ts';
import type { AllowedSources, Frontend, Routes, ServicePortPlan } from '../../../plan/types.ts';
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

export function compileVirtualServers(port: ServicePortPlan, options: VirtualServerOptions): IpvsFragment {
  const builder = new Builder(port, options);
  for (const { ip, port: endpointPort } of port.localEndpoints ?? []) {
    const { protocol } = port;
    builder.member('loopBack', { type: 'hash:ip,port,ip', ip, protocol, port: endpointPort, secondIp: ip });
  }
  for (const frontend of port.frontends) {
    if (frontend.address === undefined) builder.nodePort(frontend);
    else builder.addressed(frontend, frontend.address);
  }
  const { healthCheckNodePort } = port;
  if (healthCheckNodePort !== 0)
    builder.member('healthCheckNodePort', { type: 'bitmap:port', port: healthCheckNodePort });
  return builder;
}

class Builder implements IpvsFragment {
  readonly members: Member[] = [];
  readonly servers: VirtualServer[] = [];
  readonly #port: ServicePortPlan;
  readonly #options: VirtualServerOptions;
  /** Every frontend of a service port has the same allowed sources. */
  readonly #hosts = new Set<Ip>();

  constructor(port: ServicePortPlan, options: VirtualServerOptions) {
    this.#port = port;
    this.#options = options;
  }

  member(set: SetId, entry: SetEntry): void {
    this.members.push({ set, entry });
  }

  addressed(frontend: Frontend, ip: Ip): void {
    for (const set of setsOf(frontend, this.#port)) this.#ipPort(set, ip, frontend.port);
    if (frontend.kind === 'loadBalancerIP') this.#sourceRanges(frontend, ip);
    this.#server(ip, frontend, 'address');
    if (!this.#options.nodeIps.includes(ip)) this.member('ipvsIPs', { type: 'hash:ip', ip });
  }

  nodePort(frontend: Frontend): void {
    const { nodePortIps } = this.#options;
    const { protocol, preservesClientIP } = this.#port;
    const [all, local] = NODE_PORT_SETS[protocol];
    for (const set of preservesClientIP ? [all, local] : [all]) {
      if (protocol !== 'SCTP') this.member(set, { type: 'bitmap:port', port: frontend.port });
      else for (const ip of nodePortIps) this.#ipPort(set, ip, frontend.port);
    }
    for (const ip of nodePortIps) this.#server(ip, frontend, 'nodePort');
  }

  #sourceRanges({ allowedSources, port }: Frontend, ip: Ip): void {
    if (!allowedSources) return;
    const { protocol } = this.#port;
    this.#ipPort('loadBalancerFirewall', ip, port);
    for (const net of allowedSources.ranges.flatMap(withoutEmptyPrefix))
      this.member('loadBalancerSourceCidr', { type: 'hash:ip,port,net', ip, protocol, port, net });
    if (this.#isHost(allowedSources, ip))
      this.member('loadBalancerSourceIP', { type: 'hash:ip,port,ip', ip, protocol, port, secondIp: ip });
  }

  #isHost({ hosts }: AllowedSources, ip: Ip): boolean {
    if (hosts.length > 0 && this.#hosts.size === 0) for (const host of hosts) this.#hosts.add(host);
    return hosts.length > 0 && this.#hosts.has(ip);
  }

  #ipPort(set: SetId, ip: Ip, port: number): void {
    this.member(set, { type: 'hash:ip,port', ip, protocol: this.#port.protocol, port });
  }

  #server(ip: Ip, { port, routes }: Frontend, rank: VirtualServer['rank']): void {
    const { scheduler, family } = this.#options;
    const { affinitySeconds, protocol } = this.#port;
    this.servers.push({
      protocol,
      ip,
      port,
      scheduler,
      flags: (affinitySeconds === undefined ? 0 : PERSISTENT) | (scheduler === 'mh' ? MH_PORT : 0),
      timeout: affinitySeconds ?? 0,
      clientPrefix: family === 'IPv4' ? 32 : 128,
      destinations: this.#destinations(routes),
      rank,
      servicePort: this.#port.name,
      ...dropEntryOf(routes, { type: 'hash:ip,port', ip, protocol, port }),
    });
  }

  #destinations({ outside, pod, node }: Routes): readonly Destination[] {
    const route = [outside, pod, node].find((each) => each.verdict === 'forward');
    return route?.verdict === 'forward' ? (this.#port.pools[route.pool] ?? []) : [];
  }
}

/** Of all node ports, and of those whose clients keep their address. */
export const NODE_PORT_SETS: Readonly<Record<Protocol, readonly [all: SetId, local: SetId]>> = {
  TCP: ['nodePortTcp', 'nodePortLocalTcp'],
  UDP: ['nodePortUdp', 'nodePortLocalUdp'],
  SCTP: ['nodePortSctp', 'nodePortLocalSctp'],
};

/** In which sets the rules look an address up that clients dial. */
function setsOf({ kind }: Frontend, { preservesClientIP }: ServicePortPlan): readonly SetId[] {
  switch (kind) {
    case 'clusterIP':
      return ['clusterIP'];
    case 'externalIP':
      return [preservesClientIP ? 'externalIPLocal' : 'externalIP'];
    case 'loadBalancerIP':
      return preservesClientIP ? ['loadBalancer', 'loadBalancerLocal'] : ['loadBalancer'];
    case 'nodePort':
      return [];
  }
}

function dropEntryOf({ outside, pod, node }: Routes, entry: SetEntry): Pick<VirtualServer, 'dropEntry'> {
  if (outside.verdict !== 'drop') return {};
  const isForAll = pod.verdict === 'drop' && node.verdict === 'drop';
  return { dropEntry: { set: isForAll ? 'noLocal' : 'noLocalOutside', entry } };
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
  /** An address that a service names beats a node port of the same number on the same address. */
  readonly rank: 'address' | 'nodePort';
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
