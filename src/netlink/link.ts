/** Network interfaces. Numbers from linux/rtnetlink.h and linux/if_link.h. */
import { constants } from 'node:os';
import { JunctionError } from '../errors.ts';
import { type Change, EXISTS } from './batch.ts';
import {
  NLM_F_CREATE,
  NLM_F_EXCL,
  afterHeader,
  attributesByType,
  decodeString,
  decodeU32,
  requiredAttribute,
} from './codec.ts';
import { dumpMessages } from './dump.ts';
import type { NetlinkRequest, NetlinkSocket } from './socket.ts';

export const RTM_NEWLINK = 16;
export const RTM_DELLINK = 17;
const RTM_GETLINK = 18;
const IFLA_IFNAME = 3;
const IFLA_LINKINFO = 18;
const IFLA_EXT_MASK = 29;
const IFLA_INFO_KIND = 1;
/** Counters are most of a link's message, and nobody here reads them. */
const RTEXT_FILTER_SKIP_STATS = 1 << 3;
/** struct ifinfomsg: family, padding, type, index, flags, mask. */
const IFINFOMSG_BYTES = 16;
const INDEX_OFFSET = 4;
const FLAGS_OFFSET = 8;

export const IFF_UP = 1;

export interface Link {
  readonly index: number;
  readonly name: string;
  /** `dummy`, `bridge`, `veth`; hardware and loopback have none. */
  readonly kind: string | undefined;
  readonly flags: number;
}

export function listLinks(socket: NetlinkSocket): readonly Link[] {
  return dumpMessages(socket, 'the links', getLinks())
    .filter(({ type }) => type === RTM_NEWLINK)
    .map(({ payload }) => decodeLink(payload));
}

/** `undefined` where there is none of that name. */
export function readLink(socket: NetlinkSocket, name: string): Link | undefined {
  const reply = socket.request(getLink(name));
  if (reply.kind === 'answered') {
    const [message] = reply.messages;
    return message && decodeLink(message.payload);
  }
  if (reply.errno === constants.errno.ENODEV) return undefined;
  throw new JunctionError('NETLINK_FAILED', `netlink: cannot read the link ${name}: ${reply.name}`);
}

/** Nothing but its name and kind, and not up. EOPNOTSUPP: the kernel lacks the module of that kind. */
export function newLink(name: string, kind: string): Change {
  return {
    type: RTM_NEWLINK,
    flags: NLM_F_CREATE | NLM_F_EXCL,
    payload: (writer) =>
      writer
        .raw(new Uint8Array(IFINFOMSG_BYTES))
        .string(IFLA_IFNAME, name)
        .nested(IFLA_LINKINFO, (info) => info.string(IFLA_INFO_KIND, kind)),
    expected: EXISTS,
  };
}

export function deleteLink(name: string): Change {
  return {
    type: RTM_DELLINK,
    flags: 0,
    payload: (writer) => writer.raw(new Uint8Array(IFINFOMSG_BYTES)).string(IFLA_IFNAME, name),
    expected: new Map([[constants.errno.ENODEV, 'absent']]),
  };
}

export function getLinks(): NetlinkRequest {
  return {
    type: RTM_GETLINK,
    flags: 0,
    payload: (writer) =>
      writer.raw(new Uint8Array(IFINFOMSG_BYTES)).u32(IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS),
  };
}

export function getLink(name: string): NetlinkRequest {
  return {
    type: RTM_GETLINK,
    flags: 0,
    payload: (writer) => writer.raw(new Uint8Array(IFINFOMSG_BYTES)).string(IFLA_IFNAME, name),
  };
}

export function decodeLink(payload: Uint8Array): Link {
  const attributes = attributesByType(afterHeader(payload, IFINFOMSG_BYTES));
  const info = attributes.get(IFLA_LINKINFO);
  const kind = info && attributesByType(info).get(IFLA_INFO_KIND);
  return {
    index: decodeU32(payload.subarray(INDEX_OFFSET, INDEX_OFFSET + 4)),
    name: decodeString(requiredAttribute(attributes, IFLA_IFNAME, 'the name of a link')),
    kind: kind && decodeString(kind),
    flags: decodeU32(payload.subarray(FLAGS_OFFSET, FLAGS_OFFSET + 4)),
  };
}
