/** The addresses of network interfaces. Numbers from linux/rtnetlink.h and linux/if_addr.h. */
import { constants } from 'node:os';
import { type Family, type Ip, familyOf } from '../model/ip.ts';
import { type Change, EXISTS } from './batch.ts';
import {
  NLM_F_CREATE,
  NLM_F_EXCL,
  afterHeader,
  attributesByType,
  decodeU32,
  malformed,
  requiredAttribute,
} from './codec.ts';
import { dumpMessages } from './dump.ts';
import { AF_UNSPEC, addressFamily, decodeIp, familyOfNumber, ipBytes } from './inet.ts';
import type { NetlinkRequest, NetlinkSocket } from './socket.ts';

export const RTM_NEWADDR = 20;
export const RTM_DELADDR = 21;
const RTM_GETADDR = 22;
const IFA_ADDRESS = 1;
const IFA_LOCAL = 2;
/** struct ifaddrmsg: family, prefix length, flags, scope, index. */
const IFADDRMSG_BYTES = 8;
const SCOPES: Readonly<Record<number, AddressScope>> = { 0: 'global', 200: 'site', 253: 'link', 254: 'host' };

export type AddressScope = 'global' | 'site' | 'link' | 'host';

export interface LinkAddress {
  readonly linkIndex: number;
  readonly ip: Ip;
  readonly family: Family;
  readonly prefix: number;
  /** A number is a scope that somebody has named in /etc/iproute2/rt_scopes. */
  readonly scope: AddressScope | number;
}

export interface AddressFilter {
  readonly family?: Family;
  readonly linkIndex?: number;
}

/** Of all links, also those that are down. */
export function listAddresses(socket: NetlinkSocket, filter: AddressFilter = {}): readonly LinkAddress[] {
  const { family, linkIndex } = filter;
  return (
    dumpMessages(socket, 'the addresses', getAddresses(family))
      .filter(({ type }) => type === RTM_NEWADDR)
      .flatMap(({ payload }) => decodeAddress(payload) ?? [])
      // The kernel itself filters by link only for sockets that ask for strict checks, since 4.20.
      .filter((address) => linkIndex === undefined || address.linkIndex === linkIndex)
  );
}

/** As a host prefix, with global scope. ENODEV: no such link. */
export function addAddress(linkIndex: number, ip: Ip): Change {
  return {
    type: RTM_NEWADDR,
    flags: NLM_F_CREATE | NLM_F_EXCL,
    payload: hostAddress(linkIndex, ip),
    expected: EXISTS,
  };
}

/** Also `absent` when the link is. */
export function deleteAddress(linkIndex: number, ip: Ip): Change {
  return {
    type: RTM_DELADDR,
    flags: 0,
    payload: hostAddress(linkIndex, ip),
    expected: GONE,
  };
}

const { EADDRNOTAVAIL, ENODEV, ENXIO } = constants.errno;
const GONE: Change['expected'] = new Map([EADDRNOTAVAIL, ENODEV, ENXIO].map((errno) => [errno, 'absent']));

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
  const attributes = attributesByType(afterHeader(payload, IFADDRMSG_BYTES));
  const [familyNumber = 0, prefix = 0, , scope = 0] = payload;
  const family = familyOfNumber(familyNumber);
  if (!family) return undefined;
  // On a point-to-point link, IFA_ADDRESS is the other side's.
  const bytes =
    attributes.get(IFA_LOCAL) ?? requiredAttribute(attributes, IFA_ADDRESS, 'the address of a link');
  if (bytes.length !== (family === 'IPv4' ? 4 : 16))
    throw malformed(`an ${family} address of ${bytes.length} bytes`);
  return {
    linkIndex: decodeU32(payload.subarray(4, IFADDRMSG_BYTES)),
    ip: decodeIp(bytes),
    family,
    prefix,
    scope: SCOPES[scope] ?? scope,
  };
}

function hostAddress(linkIndex: number, ip: Ip): NetlinkRequest['payload'] {
  return (writer) => {
    const bytes = ipBytes(ip);
    const header = new Uint8Array(IFADDRMSG_BYTES);
    header.set([addressFamily(familyOf(ip)), bytes.length * 8]);
    header.set(new Uint8Array(new Uint32Array([linkIndex]).buffer), 4);
    writer.raw(header).attribute(IFA_LOCAL, bytes).attribute(IFA_ADDRESS, bytes);
  };
}
