/**
 * Sets of addresses and ports, which iptables rules match with `-m set`. Numbers from linux/netfilter/ipset/ip_set.h.
 *
 * Requests use protocol 6: kernels since 4.20 accept 6 and 7, older ones only 6. Nothing that is used here differs.
 */
import { constants } from 'node:os';
import { type Cidr, type Family, type Ip, parseCidr, prefixOf } from '../model/ip.ts';
import { errnoName } from '../system/libc.ts';
import { AttributeTable, constant, list, optional, required, type ValueOf } from './attributes.ts';
import { type Change, type NetlinkReply, type NetlinkRequest, NOTHING } from './request.ts';
import { malformedMessage, type MessageWriter, NLM_F_CREATE, NLM_F_EXCL, viewOf } from './codec.ts';
import { address, addressFamily, protocolByte } from './inet.ts';
import { type AttributeKind, bytes, text, u16be, u32be, u8 } from './kinds.ts';
import { NFGENMSG_BYTES, NFNL_SUBSYS_IPSET, nfnlRequest, NFPROTO_UNSPEC } from './generic.ts';

/** NLA_F_NET_BYTEORDER: ipset requires it on numbers and addresses. */
const NET = 0x4000;
const PROTOCOL = 6;
const COMMANDS = {
  create: 2,
  destroy: 3,
  swap: 6,
  list: 7,
  add: 9,
  delete: 10,
  type: 13,
} as const;
type Command = keyof typeof COMMANDS;
const IPSET_ATTR_DATA = 7;

/** A message about a set. The kernel splits a large set into several, of which the first has all attributes. */
const SET = new AttributeTable('a set', {
  protocol: constant(1, u8, PROTOCOL),
  name: optional(2, text),
  /** In a swap, the other set. */
  type: optional(3, text),
  revision: optional(4, u8),
  family: optional(5, u8),
  from: optional([IPSET_ATTR_DATA, 4 | NET], u16be),
  to: optional([IPSET_ATTR_DATA, 5 | NET], u16be),
  hashSize: optional([IPSET_ATTR_DATA, 18 | NET], u32be),
  maxElements: optional([IPSET_ATTR_DATA, 19 | NET], u32be),
  entries: optional(8, bytes),
});
type SetMessage = ValueOf<typeof SET>;

const TYPE = new AttributeTable('a type of sets', { revision: required(4, u8) });

const ADDRESS = new AttributeTable('an address', {
  v4: optional(1 | NET, address),
  v6: optional(2 | NET, address),
});

/** In a nest, under the number of its family. */
const ipNest: AttributeKind<Ip> = {
  write: (writer, type, ip) => {
    const start = writer.openNest();
    address.write(writer, (ip.includes(':') ? 2 : 1) | NET, ip);
    writer.closeNest(start, type);
  },
  read: (view, start, end) => {
    const { v4, v6 } = ADDRESS.readFrom(view, start, end);
    const ip = v4 ?? v6;
    if (ip === undefined) throw malformedMessage('an address without its bytes');
    return ip;
  },
};

const IP = { ip: required(1, ipNest) } as const;
const PORT = { port: required(4 | NET, u16be) } as const;
const IP_PORT = { ...IP, ...PORT, protocol: required(7, protocolByte) } as const;
const SECOND_IP = { secondIp: required(20, ipNest) } as const;

const ENTRIES = {
  'hash:ip': new AttributeTable('an entry of hash:ip', IP),
  'hash:ip,port': new AttributeTable('an entry of hash:ip,port', IP_PORT),
  'hash:ip,port,ip': new AttributeTable('an entry of hash:ip,port,ip', { ...IP_PORT, ...SECOND_IP }),
  'hash:ip,port,net': new AttributeTable('an entry of hash:ip,port,net', {
    ...IP_PORT,
    ...SECOND_IP,
    prefix: required(21, u8),
  }),
  'bitmap:port': new AttributeTable('an entry of bitmap:port', PORT),
} as const;

export type IpsetType = keyof typeof ENTRIES;
export const IPSET_TYPES = Object.keys(ENTRIES) as readonly IpsetType[];

type PlainType = Exclude<IpsetType, 'hash:ip,port,net'>;
type PlainEntry = {
  [Type in PlainType]: { readonly type: Type } & ValueOf<(typeof ENTRIES)[Type]>;
}[PlainType];
/** Networks are never the empty prefix: the kernel refuses 0.0.0.0/0. */
type NetEntry = { readonly type: 'hash:ip,port,net'; readonly net: Cidr } & ValueOf<
  (typeof ENTRIES)['hash:ip,port']
>;
export type IpsetEntry = PlainEntry | NetEntry;

export function writeEntry(writer: MessageWriter, entry: IpsetEntry): void {
  if (entry.type !== 'hash:ip,port,net') {
    ENTRIES[entry.type].write(writer, entry);
    return;
  }
  // A canonical network begins with a canonical address.
  const secondIp = entry.net.slice(0, entry.net.indexOf('/')) as Ip;
  ENTRIES[entry.type].write(writer, { ...entry, secondIp, prefix: prefixOf(entry.net) });
}

/** The entries in one message. */
export function decodeEntries(type: IpsetType, members: Uint8Array): readonly IpsetEntry[] {
  const entry: AttributeKind<IpsetEntry> = {
    write: () => undefined,
    read: (view, start, end) => readEntry(type, view, start, end),
  };
  const entries = list(entry).read(viewOf(members), 0, members.length, {});
  return typeof entries === 'object' ? entries : [];
}

function readEntry(type: IpsetType, view: DataView, start: number, end: number): IpsetEntry {
  if (type !== 'hash:ip,port,net') return { type, ...ENTRIES[type].readFrom(view, start, end) } as PlainEntry;
  const { secondIp, prefix, ...rest } = ENTRIES[type].readFrom(view, start, end);
  const net = parseCidr(`${secondIp}/${prefix}`);
  if (!net) throw malformedMessage(`${secondIp} with a prefix of ${prefix} bits`);
  return { type, ...rest, net };
}

function isIpsetType(text: string): text is IpsetType {
  return Object.hasOwn(ENTRIES, text);
}

const IPSET_ERR_EXIST = 4103;
/** For bitmaps, the numbers from 4352 on have another meaning. */
const ERROR_NAMES: Readonly<Record<number, string>> = {
  4097: 'IPSET_ERR_PROTOCOL',
  4098: 'IPSET_ERR_FIND_TYPE',
  4099: 'IPSET_ERR_MAX_SETS',
  4100: 'IPSET_ERR_BUSY',
  4101: 'IPSET_ERR_EXIST_SETNAME2',
  4102: 'IPSET_ERR_TYPE_MISMATCH',
  4103: 'IPSET_ERR_EXIST',
  4104: 'IPSET_ERR_INVALID_CIDR',
  4106: 'IPSET_ERR_INVALID_FAMILY',
  4108: 'IPSET_ERR_REFERENCED',
  4109: 'IPSET_ERR_IPADDR_IPV4',
  4110: 'IPSET_ERR_IPADDR_IPV6',
  4352: 'IPSET_ERR_HASH_FULL',
  4353: 'IPSET_ERR_HASH_ELEM',
};

type IpsetSpec =
  | {
      readonly type: Exclude<IpsetType, 'bitmap:port'>;
      readonly family: Family;
      readonly hashSize: number;
      readonly maxElements: number;
    }
  | { readonly type: 'bitmap:port'; readonly from: number; readonly to: number };

/** `refused` with EEXIST: there is a set of that name which differs in type, family or size. */
export function createSet(name: string, spec: IpsetSpec, revision: number): Change {
  const family = 'family' in spec ? addressFamily(spec.family) : NFPROTO_UNSPEC;
  // Without NLM_F_EXCL, an equal set that exists is no error.
  return ipsetChange('create', NLM_F_CREATE, { ...spec, name, revision, family }, NOTHING);
}

/** `refused` with IPSET_ERR_BUSY: a rule still refers to it. */
export function destroySet(name: string): Change {
  // Without NLM_F_EXCL, kernels since 5.14 report success when there is no such set.
  return ipsetChange('destroy', NLM_F_EXCL, { name }, ABSENT_SET);
}

/**
 * Exchanges the contents of two sets of one type, also while rules refer to them. `absent` is the first; when the other
 * one is, that is IPSET_ERR_EXIST_SETNAME2.
 */
export function swapSets(one: string, other: string): Change {
  return ipsetChange('swap', 0, { name: one, type: other }, ABSENT_SET);
}

export function addEntry(name: string, entry: IpsetEntry): Change {
  return entryChange('add', name, entry, EXISTING_ENTRY);
}

export function deleteEntry(name: string, entry: IpsetEntry): Change {
  return entryChange('delete', name, entry, ABSENT_ENTRY);
}

const { ENOENT } = constants.errno;
const ABSENT_SET: Change['expected'] = new Map([[ENOENT, 'absent']]);
/** IPSET_ERR_EXIST means "exists" when adding and "does not exist" when deleting. */
const EXISTING_ENTRY: Change['expected'] = new Map([
  [IPSET_ERR_EXIST, 'exists'],
  [ENOENT, 'absent'],
]);
const ABSENT_ENTRY: Change['expected'] = new Map([
  [IPSET_ERR_EXIST, 'absent'],
  [ENOENT, 'absent'],
]);

function entryChange(
  command: Command,
  name: string,
  entry: IpsetEntry,
  expected: Change['expected'],
): Change {
  const { type, flags, payload } = ipsetRequest(command, NLM_F_EXCL, { name }, (writer) => {
    writer.nested(IPSET_ATTR_DATA, (data) => writeEntry(data, entry));
  });
  return { type, flags, payload, expected, nameOf: ipsetErrorName };
}

function ipsetChange(
  command: Command,
  flags: number,
  message: Partial<SetMessage>,
  expected: Change['expected'],
): Change {
  return { ...ipsetRequest(command, flags, message), expected, nameOf: ipsetErrorName };
}

function ipsetRequest(
  command: Command,
  flags: number,
  message: Partial<SetMessage>,
  more?: (writer: MessageWriter) => void,
): NetlinkRequest {
  return nfnlRequest(NFNL_SUBSYS_IPSET, COMMANDS[command], flags, addressFamily('IPv4'), (writer) => {
    SET.write(writer, message);
    more?.(writer);
  });
}

function ipsetErrorName(errno: number): string {
  return ERROR_NAMES[errno] ?? errnoName(errno);
}

/** What one message has of a set. */
interface IpsetPart {
  /** The entries of another program's set, with a type that is not in ENTRIES, are not read. */
  readonly type: string;
  readonly maxElements: number | undefined;
  readonly entries: readonly IpsetEntry[];
}

/** A dump. */
export function listRequest(name: string): NetlinkRequest {
  return ipsetRequest('list', 0, { name });
}

/** Reads the messages of one set, in their order: the first has the header, and each has some of the entries. */
export function setDecoder(): (payload: Uint8Array) => IpsetPart {
  let header: Pick<IpsetPart, 'type' | 'maxElements'> | undefined;
  return (payload) => {
    const { type, maxElements, entries } = SET.read(payload, NFGENMSG_BYTES);
    if (type !== undefined) header = { type, maxElements };
    if (!header) throw malformedMessage('entries without the set that they are in');
    return {
      ...header,
      entries: entries && isIpsetType(header.type) ? decodeEntries(header.type, entries) : [],
    };
  };
}

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
  if (!message) throw malformedMessage(`no answer about sets of type ${type}`);
  return { state: 'present', revision: Math.min(decodeRevision(message.payload), NEWEST_REVISION[type]) };
}

export function typeRequest(type: IpsetType, family: Family): NetlinkRequest {
  const number = type === 'bitmap:port' ? NFPROTO_UNSPEC : addressFamily(family);
  return ipsetRequest('type', 0, { type, family: number });
}

/** The newest that the kernel knows. */
export function decodeRevision(payload: Uint8Array): number {
  return TYPE.read(payload, NFGENMSG_BYTES).revision;
}
