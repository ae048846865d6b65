/**
 * Network interfaces, their addresses, and routes. Numbers from linux/rtnetlink.h, linux/if_link.h and
 * linux/if_addr.h.
 */
import { constants } from 'node:os';
import { type Family, type Ip, familyOf } from '../model/ip.ts';
import { AttributeTable, optional, required } from './attributes.ts';
import { type Change, EXISTS, type NetlinkRequest } from './request.ts';
import { LITTLE_ENDIAN, malformedMessage, NLM_F_CREATE, NLM_F_EXCL, viewOf } from './codec.ts';
import { address, addressFamily, AF_UNSPEC, decodeIp, familyOfNumber, ipBytes } from './inet.ts';
import { bytes, text, u32 } from './kinds.ts';

export const RTM_NEWLINK = 16;
export const RTM_DELLINK = 17;
const RTM_GETLINK = 18;
export const RTM_NEWADDR = 20;
export const RTM_DELADDR = 21;
const RTM_GETADDR = 22;
const RTM_GETROUTE = 26;

export const RTNLGRP_LINK = 1;
export const RTNLGRP_IPV4_IFADDR = 5;
export const RTNLGRP_IPV6_IFADDR = 9;

const LINK = new AttributeTable('a link', {
  name: required(3, text),
  kind: optional([18, 1], text),
});

const ADDRESS = new AttributeTable('an address of a link', {
  local: optional(2, bytes),
  address: optional(1, bytes),
});

const ROUTE = new AttributeTable('a route', {
  destination: required(1, address),
  source: optional(2, address),
  inLink: optional(3, u32),
  outLink: optional(4, u32),
  gateway: optional(5, address),
});

/** struct ifinfomsg: family, padding, type, index, flags, mask. */
const IFINFOMSG_BYTES = 16;
/** struct ifaddrmsg: family, prefix length, flags, scope, index. */
const IFADDRMSG_BYTES = 8;
const INDEX_OFFSET = 4;
const FLAGS_OFFSET = 8;
/** struct rtmsg: family, two prefix lengths, type of service, table, protocol, scope, type, flags. */
const RTMSG_BYTES = 12;
const PREFIX_OFFSET = 1;
const SOURCE_PREFIX_OFFSET = 2;
const ROUTE_TYPE_OFFSET = 7;
const RTN_LOCAL = 2;

export const IFF_UP = 1;

export interface Link {
  readonly index: number;
  readonly name: string;
  /** `dummy`, `bridge`, `veth`; hardware and loopback have none. */
  readonly kind: string | undefined;
  readonly flags: number;
}

type AddressScope = 'global' | 'site' | 'link' | 'host';
const SCOPES: Readonly<Record<number, AddressScope>> = { 0: 'global', 200: 'site', 253: 'link', 254: 'host' };

export interface LinkAddress {
  readonly linkIndex: number;
  readonly ip: Ip;
  readonly family: Family;
  readonly prefix: number;
  /** A number: a scope from /etc/iproute2/rt_scopes. */
  readonly scope: AddressScope | number;
}

const { EADDRNOTAVAIL, ENODEV, ENXIO } = constants.errno;
const ABSENT_LINK: Change['expected'] = new Map([[ENODEV, 'absent']]);
const ABSENT_ADDRESS: Change['expected'] = new Map(
  [EADDRNOTAVAIL, ENODEV, ENXIO].map((errno) => [errno, 'absent']),
);

/** The link is not up. EOPNOTSUPP: the kernel lacks the module of that kind. */
export function newLink(name: string, kind: string): Change {
  return { ...linkRequest(RTM_NEWLINK, { name, kind }, NLM_F_CREATE | NLM_F_EXCL), expected: EXISTS };
}

export function deleteLink(name: string): Change {
  return { ...linkRequest(RTM_DELLINK, { name }), expected: ABSENT_LINK };
}

export function getLink(name: string): NetlinkRequest {
  return linkRequest(RTM_GETLINK, { name });
}

/** A dump of all links. */
export function getLinks(): NetlinkRequest {
  return linkRequest(RTM_GETLINK, {});
}

export function decodeLink(payload: Uint8Array): Link {
  const { name, kind } = LINK.read(payload, IFINFOMSG_BYTES);
  return { index: u32At(payload, INDEX_OFFSET), name, kind, flags: u32At(payload, FLAGS_OFFSET) };
}

function linkRequest(
  type: number,
  attributes: Parameters<(typeof LINK)['write']>[1],
  flags = 0,
): NetlinkRequest {
  const header = new Uint8Array(IFINFOMSG_BYTES);
  return { type, flags, payload: (writer) => LINK.write(writer.raw(header), attributes) };
}

/** As a host prefix, with global scope. ENODEV: no such link. */
export function addAddress(linkIndex: number, ip: Ip): Change {
  return { ...hostRequest(RTM_NEWADDR, linkIndex, ip, NLM_F_CREATE | NLM_F_EXCL), expected: EXISTS };
}

/** `absent` also where there is no such link. */
export function deleteAddress(linkIndex: number, ip: Ip): Change {
  return { ...hostRequest(RTM_DELADDR, linkIndex, ip, 0), expected: ABSENT_ADDRESS };
}

function hostRequest(type: number, linkIndex: number, ip: Ip, flags: number): NetlinkRequest {
  return {
    type,
    flags,
    payload: (writer) => {
      const header = hostHeader(IFADDRMSG_BYTES, ip);
      viewOf(header).setUint32(INDEX_OFFSET, linkIndex, LITTLE_ENDIAN);
      const own = ipBytes(ip);
      ADDRESS.write(writer.raw(header), { local: own, address: own });
    },
  };
}

/** A dump. The addresses of all links, also of those that are down. */
export function getAddresses(family?: Family): NetlinkRequest {
  const number = family ? addressFamily(family) : AF_UNSPEC;
  return {
    type: RTM_GETADDR,
    flags: 0,
    payload: (writer) => writer.raw(Uint8Array.of(number, 0, 0, 0, 0, 0, 0, 0)),
  };
}

/** `undefined` for addresses of other families, such as MCTP's. */
export function decodeAddress(payload: Uint8Array): LinkAddress | undefined {
  const [familyNumber = 0, prefix = 0, , scope = 0] = payload;
  const family = familyOfNumber(familyNumber);
  const attributes = ADDRESS.read(payload, IFADDRMSG_BYTES);
  if (!family) return undefined;
  // On a point-to-point link, IFA_ADDRESS is the other side's.
  const own = attributes.local ?? attributes.address;
  if (own?.length !== (family === 'IPv4' ? 4 : 16))
    throw malformedMessage('a link without an address of its family');
  return {
    linkIndex: u32At(payload, INDEX_OFFSET),
    ip: decodeIp(own),
    family,
    prefix,
    scope: SCOPES[scope] ?? scope,
  };
}

/** How a packet arrives; without it, this machine sends the packet. */
interface Arrival {
  readonly source: Ip;
  /** The number of the link. */
  readonly inLink: number;
}

/** Where the kernel would send a packet. EXDEV, since Linux 6.13 EINVAL: rp_filter would drop it. */
export function getRoute(to: Ip, arrival?: Arrival): NetlinkRequest {
  return {
    type: RTM_GETROUTE,
    flags: 0,
    payload: (writer) => {
      const header = hostHeader(RTMSG_BYTES, to);
      if (arrival) header[SOURCE_PREFIX_OFFSET] = header[PREFIX_OFFSET] ?? 0;
      ROUTE.write(writer.raw(header), { destination: to, ...arrival });
    },
  };
}

export interface FoundRoute {
  readonly outLink: number | undefined;
  /** Unset: the destination is a neighbour. */
  readonly gateway: Ip | undefined;
  /** The packet is for this machine itself. */
  readonly isLocal: boolean;
}

export function decodeRoute(payload: Uint8Array): FoundRoute {
  const { outLink, gateway } = ROUTE.read(payload, RTMSG_BYTES);
  return { outLink, gateway, isLocal: payload[ROUTE_TYPE_OFFSET] === RTN_LOCAL };
}

/** ifaddrmsg and rtmsg both begin with the family and the prefix length. */
function hostHeader(size: number, ip: Ip): Uint8Array {
  const header = new Uint8Array(size);
  header.set(familyOf(ip) === 'IPv4' ? [addressFamily('IPv4'), 32] : [addressFamily('IPv6'), 128]);
  return header;
}

function u32At(payload: Uint8Array, offset: number): number {
  return u32.read(viewOf(payload), offset, offset + 4);
}
