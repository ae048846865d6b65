/** Which kinds of sets the kernel has, and in which revision to ask for them. */
import { JunctionError } from '../errors.ts';
import type { Family } from '../model/ip.ts';
import { afterHeader, attributesByType, decodeU8, requiredAttribute } from './codec.ts';
import {
  IPSET_ATTR_FAMILY,
  IPSET_ATTR_REVISION,
  IPSET_ATTR_TYPENAME,
  ipsetErrorName,
  ipsetRequest,
} from './ipset.ts';
import type { IpsetType } from './ipsetEntry.ts';
import { NFGENMSG_BYTES, NFPROTO_UNSPEC } from './nfnetlink.ts';
import { addressFamily } from './inet.ts';
import type { NetlinkReply, NetlinkRequest, NetlinkSocket } from './socket.ts';

const IPSET_CMD_TYPE = 13;

/**
 * The program ipset refuses to list any set at all when one has a revision that it does not know. These are what its
 * version 7.10 (2020) knows; kernels have newer ones, with nothing that is needed here. (Kernels show `bucketsize` and
 * `initval` only for their very newest revision, so a set of ours may lack them in listings.)
 */
const NEWEST_REVISION: Readonly<Record<IpsetType, number>> = {
  'hash:ip': 5,
  'hash:ip,port': 6,
  'hash:ip,port,ip': 6,
  'hash:ip,port,net': 8,
  'bitmap:port': 3,
};

export type IpsetSupport =
  | { readonly state: 'present'; readonly revision: number }
  | { readonly state: 'absent'; readonly module: string; readonly reason: string };

/** The kernel loads the type's module if it can. */
export function probeSetType(socket: NetlinkSocket, type: IpsetType, family: Family): IpsetSupport {
  return decodeSupport(type, socket.request(typeRequest(type, family)));
}

export function decodeSupport(type: IpsetType, reply: NetlinkReply): IpsetSupport {
  if (reply.kind === 'refused') {
    const module = `ip_set_${type.replaceAll(/[:,]/g, (sign) => (sign === ':' ? '_' : ''))}`;
    return {
      state: 'absent',
      module,
      reason: `the kernel has no sets of type ${type} (${ipsetErrorName(reply.errno)}): load the module ${module}`,
    };
  }
  const [message] = reply.messages;
  if (!message) throw new JunctionError('NETLINK_MALFORMED', `netlink: no answer about sets of type ${type}`);
  return { state: 'present', revision: Math.min(decodeRevision(message.payload), NEWEST_REVISION[type]) };
}

export function typeRequest(type: IpsetType, family: Family): NetlinkRequest {
  return ipsetRequest(IPSET_CMD_TYPE, 0, (writer) =>
    writer
      .string(IPSET_ATTR_TYPENAME, type)
      .u8(IPSET_ATTR_FAMILY, type === 'bitmap:port' ? NFPROTO_UNSPEC : addressFamily(family)),
  );
}

/** The newest that the kernel knows. */
export function decodeRevision(payload: Uint8Array): number {
  const attributes = attributesByType(afterHeader(payload, NFGENMSG_BYTES));
  return decodeU8(requiredAttribute(attributes, IPSET_ATTR_REVISION, 'the revision of a type of sets'));
}
