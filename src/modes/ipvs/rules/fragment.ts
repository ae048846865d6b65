/** What the IPVS mode makes of a part of the plan: virtual servers, entries of sets, addresses of its device. */
import type { Ip } from '../../../model/ip.ts';
import { hostPort } from '../../../model/ip.ts';
import type { Protocol } from '../../../model/objects.ts';
import type { SetEntry, SetId } from './sets.ts';

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
  /** By which rules drop what the policy keeps from endpoints elsewhere; there while this server is. */
  readonly silence?: Member;
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

export interface IpvsFragment {
  readonly members: readonly Member[];
  /** On the device that makes them this node's own. */
  readonly addresses: readonly Ip[];
  readonly servers: readonly VirtualServer[];
}

export const NO_FRAGMENT: IpvsFragment = { members: [], addresses: [], servers: [] };

/** `TCP 10.96.0.1:443` */
export function serverKey({ protocol, ip, port }: ServerKey): string {
  return `${protocol} ${hostPort(ip, port)}`;
}
