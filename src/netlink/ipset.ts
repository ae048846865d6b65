/**
 * Sets of addresses and ports, which iptables rules match with `-m set`. Numbers from linux/netfilter/ipset/ip_set.h.
 *
 * Requests speak protocol 6, the oldest that is still spoken: kernels since 4.20 take it beside 7, older ones take
 * nothing else, and the two differ in nothing that is used here.
 */
import { constants } from 'node:os';
import type { Family } from '../model/ip.ts';
import { errnoName } from '../system/libc.ts';
import { type Change, NOTHING } from './batch.ts';
import { type MessageWriter, NLA_F_NET_BYTEORDER, NLM_F_CREATE, NLM_F_EXCL } from './codec.ts';
import { type IpsetEntry, type IpsetType, writeEntry } from './ipsetEntry.ts';
import { NFNL_SUBSYS_IPSET, NFPROTO_UNSPEC, nfgenmsg, nfnlType } from './nfnetlink.ts';
import { addressFamily } from './inet.ts';

const PROTOCOL = 6;
const IPSET_CMD_CREATE = 2;
const IPSET_CMD_DESTROY = 3;
const IPSET_CMD_FLUSH = 4;
const IPSET_CMD_RENAME = 5;
const IPSET_CMD_SWAP = 6;
const IPSET_CMD_ADD = 9;
const IPSET_CMD_DEL = 10;
const IPSET_ATTR_PROTOCOL = 1;
export const IPSET_ATTR_SETNAME = 2;
export const IPSET_ATTR_TYPENAME = 3;
export const IPSET_ATTR_REVISION = 4;
export const IPSET_ATTR_FAMILY = 5;
export const IPSET_ATTR_DATA = 7;
const IPSET_ATTR_SETNAME2 = IPSET_ATTR_TYPENAME;
const IPSET_ATTR_PORT_FROM = 4;
const IPSET_ATTR_PORT_TO = 5;
export const IPSET_ATTR_HASHSIZE = 18;
export const IPSET_ATTR_MAXELEM = 19;

const IPSET_ERR_EXIST = 4103;
/** Of these, those from 4352 on mean something else for bitmaps, which are never full. */
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

export interface HashSpec {
  readonly type: Exclude<IpsetType, 'bitmap:port'>;
  readonly family: Family;
  readonly hashSize: number;
  readonly maxElements: number;
}

export interface BitmapSpec {
  readonly type: 'bitmap:port';
  readonly from: number;
  readonly to: number;
}

export type IpsetSpec = HashSpec | BitmapSpec;

/** `refused` with EEXIST: there is a set of that name which differs in type, family or size. */
export function createSet(name: string, spec: IpsetSpec, revision: number): Change {
  const family = spec.type === 'bitmap:port' ? NFPROTO_UNSPEC : addressFamily(spec.family);
  return change(
    IPSET_CMD_CREATE,
    // Without NLM_F_EXCL, a set that is there and alike is as good as a new one.
    NLM_F_CREATE,
    (writer) =>
      writer
        .string(IPSET_ATTR_SETNAME, name)
        .string(IPSET_ATTR_TYPENAME, spec.type)
        .u8(IPSET_ATTR_REVISION, revision)
        .u8(IPSET_ATTR_FAMILY, family)
        .nested(IPSET_ATTR_DATA, (data) => writeSpec(data, spec)),
    NOTHING,
  );
}

/** `refused` with IPSET_ERR_BUSY: a rule still refers to it. */
export function destroySet(name: string): Change {
  // Without NLM_F_EXCL, kernels since 5.14 call it done when there is no such set.
  return change(
    IPSET_CMD_DESTROY,
    NLM_F_EXCL,
    (writer) => writer.string(IPSET_ATTR_SETNAME, name),
    ABSENT_SET,
  );
}

export function flushSet(name: string): Change {
  return change(IPSET_CMD_FLUSH, 0, (writer) => writer.string(IPSET_ATTR_SETNAME, name), ABSENT_SET);
}

/** Only while no rule refers to it (IPSET_ERR_REFERENCED), and to a name that is free (IPSET_ERR_EXIST_SETNAME2). */
export function renameSet(from: string, to: string): Change {
  return change(
    IPSET_CMD_RENAME,
    0,
    (writer) => writer.string(IPSET_ATTR_SETNAME, from).string(IPSET_ATTR_SETNAME2, to),
    ABSENT_SET,
  );
}

/**
 * Exchanges the contents of two sets of one type, also while rules refer to them. `absent` is the first; when the other
 * one is, that is IPSET_ERR_EXIST_SETNAME2.
 */
export function swapSets(one: string, other: string): Change {
  return change(
    IPSET_CMD_SWAP,
    0,
    (writer) => writer.string(IPSET_ATTR_SETNAME, one).string(IPSET_ATTR_SETNAME2, other),
    ABSENT_SET,
  );
}

export function addEntry(name: string, entry: IpsetEntry): Change {
  return entryChange(IPSET_CMD_ADD, name, entry, EXISTING_ENTRY);
}

export function deleteEntry(name: string, entry: IpsetEntry): Change {
  return entryChange(IPSET_CMD_DEL, name, entry, ABSENT_ENTRY);
}

const { ENOENT } = constants.errno;
const ABSENT_SET = new Map([[ENOENT, 'absent' as const]]);
/** One error says "is there" when adding and "is not there" when deleting. */
const EXISTING_ENTRY = new Map([
  [IPSET_ERR_EXIST, 'exists' as const],
  [ENOENT, 'absent' as const],
]);
const ABSENT_ENTRY = new Map([
  [IPSET_ERR_EXIST, 'absent' as const],
  [ENOENT, 'absent' as const],
]);

function entryChange(command: number, name: string, entry: IpsetEntry, expected: Change['expected']): Change {
  return change(
    command,
    NLM_F_EXCL,
    (writer) =>
      writer.string(IPSET_ATTR_SETNAME, name).nested(IPSET_ATTR_DATA, (data) => writeEntry(data, entry)),
    expected,
  );
}

function change(
  command: number,
  flags: number,
  body: (writer: MessageWriter) => void,
  expected: Change['expected'],
): Change {
  return { ...ipsetRequest(command, flags, body), expected, nameOf: ipsetErrorName };
}

export function ipsetRequest(
  command: number,
  flags: number,
  body: (writer: MessageWriter) => void,
): Pick<Change, 'type' | 'flags' | 'payload'> {
  return {
    type: nfnlType(NFNL_SUBSYS_IPSET, command),
    flags,
    payload: (writer) => body(writer.raw(nfgenmsg(addressFamily('IPv4'))).u8(IPSET_ATTR_PROTOCOL, PROTOCOL)),
  };
}

export function ipsetErrorName(errno: number): string {
  return ERROR_NAMES[errno] ?? errnoName(errno);
}

function writeSpec(writer: MessageWriter, spec: IpsetSpec): void {
  if (spec.type === 'bitmap:port') {
    writer
      .u16be(IPSET_ATTR_PORT_FROM | NLA_F_NET_BYTEORDER, spec.from)
      .u16be(IPSET_ATTR_PORT_TO | NLA_F_NET_BYTEORDER, spec.to);
    return;
  }
  writer
    .u32be(IPSET_ATTR_HASHSIZE | NLA_F_NET_BYTEORDER, spec.hashSize)
    .u32be(IPSET_ATTR_MAXELEM | NLA_F_NET_BYTEORDER, spec.maxElements);
}
