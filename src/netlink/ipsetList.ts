/** Sets as the kernel has them. */
import { runToEnd } from '../time/timeSlice.ts';
import { constants } from 'node:os';
import { JunctionError } from '../errors.ts';
import type { Family } from '../model/ip.ts';
import {
  type Message,
  NLA_F_NET_BYTEORDER,
  afterHeader,
  attributesByType,
  decodeAttributes,
  decodeString,
  decodeU32be,
  decodeU8,
  malformed,
  requiredAttribute,
} from './codec.ts';
import { dump } from './dump.ts';
import {
  IPSET_ATTR_DATA,
  IPSET_ATTR_FAMILY,
  IPSET_ATTR_HASHSIZE,
  IPSET_ATTR_MAXELEM,
  IPSET_ATTR_REVISION,
  IPSET_ATTR_SETNAME,
  IPSET_ATTR_TYPENAME,
  ipsetErrorName,
  ipsetRequest,
} from './ipset.ts';
import { type IpsetEntry, type IpsetType, decodeEntry, isIpsetType } from './ipsetEntry.ts';
import { NFGENMSG_BYTES } from './nfnetlink.ts';
import { familyOfNumber } from './inet.ts';
import type { NetlinkRequest, NetlinkSocket } from './socket.ts';

const IPSET_CMD_LIST = 7;
const IPSET_ATTR_FLAGS = 6;
const IPSET_ATTR_ADT = 8;
const IPSET_ATTR_ELEMENTS = 24;
const IPSET_ATTR_REFERENCES = 25;
const IPSET_FLAG_LIST_HEADER = 1 << 2;

export interface IpsetHeader {
  readonly name: string;
  /** Also types that are none of ours: somebody else's set. */
  readonly type: string;
  readonly revision: number;
  /** A set of ports has none. */
  readonly family: Family | undefined;
  readonly hashSize: number | undefined;
  readonly maxElements: number | undefined;
  /** Rules and sets that refer to it. */
  readonly references: number;
  /** Kernels before 4.14 do not tell. */
  readonly elements: number | undefined;
}

export interface Ipset extends IpsetHeader {
  readonly type: IpsetType;
  readonly entries: readonly IpsetEntry[];
}

/** Of all sets, without their entries. */
export function listSetHeaders(socket: NetlinkSocket): readonly IpsetHeader[] {
  const messages = listMessages(socket, 'the sets', listRequest(undefined, IPSET_FLAG_LIST_HEADER)) ?? [];
  return messages.flatMap(({ payload }) => decodeHeader(attributesOf(payload)) ?? []);
}

/** `undefined` where there is none of that name. One of another type than ours cannot be read. */
export function readSet(socket: NetlinkSocket, name: string): Ipset | undefined {
  const messages = listMessages(socket, `the set ${name}`, listRequest(name, 0));
  return messages && decodeSet(messages);
}

export function listRequest(name: string | undefined, flags: number): NetlinkRequest {
  return ipsetRequest(IPSET_CMD_LIST, 0, (writer) => {
    if (name !== undefined) writer.string(IPSET_ATTR_SETNAME, name);
    if (flags !== 0) writer.u32be(IPSET_ATTR_FLAGS | NLA_F_NET_BYTEORDER, flags);
  });
}

/** The messages of one set: the first has the header, and each some of the entries. */
export function decodeSet(messages: readonly Pick<Message, 'payload'>[]): Ipset | undefined {
  return runToEnd(decodingSet(messages));
}

/** The same, message by message. */
export function* decodingSet(
  messages: readonly Pick<Message, 'payload'>[],
): Generator<void, Ipset | undefined> {
  let header: IpsetHeader | undefined;
  const entries: IpsetEntry[] = [];
  for (const { payload } of messages) {
    const attributes = attributesOf(payload);
    header ??= decodeHeader(attributes);
    if (!header) throw malformed('entries without the set that they are in');
    const type = typeOf(header);
    const members = attributes.get(IPSET_ATTR_ADT);
    if (members) for (const { value } of decodeAttributes(members)) entries.push(decodeEntry(type, value));
    yield;
  }
  return header && { ...header, type: typeOf(header), entries };
}

/** Of a set of any type. */
export function decodeSetHeader(messages: readonly Pick<Message, 'payload'>[]): IpsetHeader | undefined {
  const [first] = messages;
  return first && decodeHeader(attributesOf(first.payload));
}

function decodeHeader(attributes: ReadonlyMap<number, Uint8Array>): IpsetHeader | undefined {
  const data = attributes.get(IPSET_ATTR_DATA);
  const type = attributes.get(IPSET_ATTR_TYPENAME);
  if (!data || !type) return undefined; // a later message of the same set
  const values = attributesByType(data);
  const number = (key: number): number | undefined => {
    const value = values.get(key);
    return value && decodeU32be(value);
  };
  const value = (key: number, what: string): Uint8Array =>
    requiredAttribute(attributes, key, `the ${what} of a set`);
  return {
    name: decodeString(value(IPSET_ATTR_SETNAME, 'name')),
    type: decodeString(type),
    revision: decodeU8(value(IPSET_ATTR_REVISION, 'revision')),
    family: familyOfNumber(decodeU8(value(IPSET_ATTR_FAMILY, 'family'))),
    hashSize: number(IPSET_ATTR_HASHSIZE),
    maxElements: number(IPSET_ATTR_MAXELEM),
    references: number(IPSET_ATTR_REFERENCES) ?? 0,
    elements: number(IPSET_ATTR_ELEMENTS),
  };
}

function attributesOf(payload: Uint8Array): ReadonlyMap<number, Uint8Array> {
  return attributesByType(afterHeader(payload, NFGENMSG_BYTES));
}

function typeOf({ type }: IpsetHeader): IpsetType {
  if (!isIpsetType(type)) throw malformed(`a set of type ${type}`);
  return type;
}

function listMessages(
  socket: NetlinkSocket,
  what: string,
  request: NetlinkRequest,
): readonly Message[] | undefined {
  const reply = dump(socket, what, request);
  if (reply.kind === 'answered') return reply.messages;
  if (reply.errno === constants.errno.ENOENT) return undefined;
  throw new JunctionError('NETLINK_FAILED', `netlink: cannot list ${what}: ${ipsetErrorName(reply.errno)}`);
}
