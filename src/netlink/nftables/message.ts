/** What all messages of nf_tables have in common. Numbers from linux/netfilter/nf_tables.h. */
import { AttributeTable, optional, required, type Rows, type ValueOf } from '../attributes.ts';
import { isAscii, malformedMessage, type Message } from '../codec.ts';
import { type AttributeKind, bytesAt, decodeText, text, u32be, words } from '../kinds.ts';
import { NFGENMSG_BYTES, NFNL_SUBSYS_NFTABLES, nfnlRequest, nfnlType, NFPROTO_UNSPEC } from '../generic.ts';
import { NETLINK_NETFILTER } from '../socket.ts';
import { type NetlinkRequest, payloadsNow } from '../request.ts';

/** NFT_MSG_*: what is done to an object, or was done, in a notification. */
const OPERATIONS = words({
  'new table': 0,
  'get table': 1,
  'delete table': 2,
  'new chain': 3,
  'get chain': 4,
  'delete chain': 5,
  'new rule': 6,
  'get rule': 7,
  'delete rule': 8,
  'new set': 9,
  'get set': 10,
  'delete set': 11,
  'new elements': 12,
  'get elements': 13,
  'delete elements': 14,
  'new generation': 15,
  'get generation': 16,
});
export type OperationName = Parameters<(typeof OPERATIONS)['number']>[0];

/** The type of the message that ends the notifications of a transaction. */
export const NEW_GENERATION = nfnlType(NFNL_SUBSYS_NFTABLES, OPERATIONS.number('new generation'));

/** The group that is notified of every change. linux/netfilter/nfnetlink.h */
export const NFNLGRP_NFTABLES = 7;

/** NFPROTO_* of linux/netfilter.h */
const NFT_FAMILIES = words({ inet: 1, ip: 2, arp: 3, netdev: 5, bridge: 7, ip6: 10 });
export type NftFamily = Parameters<(typeof NFT_FAMILIES)['number']>[0];

/** In which table something is. */
export interface TablePlace {
  readonly family: NftFamily;
  readonly table: string;
}

/** For people; nft prints it. */
export const commentKind: AttributeKind<string> = {
  write: (writer, type, value) => writer.attribute(type, encodeComment(value)),
  read: (view, start, end) => decodeComment(bytesAt(view, start, end)),
};

/** Without a table, it asks for everything of a family. */
export function nftRequest<R extends Rows>(
  operation: OperationName,
  flags: number,
  family: NftFamily,
  table?: AttributeTable<R>,
  value: Partial<ValueOf<AttributeTable<R>>> = {},
): NetlinkRequest {
  const number = OPERATIONS.number(operation);
  return nfnlRequest(NFNL_SUBSYS_NFTABLES, number, flags, NFT_FAMILIES.number(family), (writer) =>
    table?.write(writer, value),
  );
}

/** The operation of a message, `undefined` when it is another subsystem's. */
export function operationOf({ type }: { readonly type: number }): OperationName | undefined {
  return type >> 8 === NFNL_SUBSYS_NFTABLES ? OPERATIONS.word(type & 0xff) : undefined;
}

/** Where a message names what it is about. */
const NAMES: Readonly<Record<string, AttributeTable<Rows>>> = {
  table: new AttributeTable('a table', { table: optional(1, text) }),
  chain: new AttributeTable('a chain', { table: optional(1, text), chain: optional(3, text) }),
  rule: new AttributeTable('a rule', { table: optional(1, text), chain: optional(2, text) }),
  set: new AttributeTable('a set', { table: optional(1, text), set: optional(2, text) }),
  elements: new AttributeTable('elements', { table: optional(1, text), set: optional(2, text) }),
};

interface Names {
  readonly table?: string | undefined;
  readonly chain?: string | undefined;
  readonly set?: string | undefined;
}

/** The names in a notification or in one message of a dump; none where it is about something else. */
export function namesIn(message: Pick<Message, 'type' | 'payload'>): Names {
  const operation = operationOf(message) ?? '';
  return NAMES[operation.slice(operation.indexOf(' ') + 1)]?.read(message.payload, NFGENMSG_BYTES) ?? {};
}

interface InFamily {
  /** `undefined` for a family that is newer than this program. */
  readonly family: NftFamily | undefined;
}

/** What a message says that a table reads. */
export type MessageOf<Table> = InFamily & ValueOf<Table>;

export function readMessage<R extends Rows>(
  table: AttributeTable<R>,
  payload: Uint8Array,
): MessageOf<AttributeTable<R>> {
  return { family: NFT_FAMILIES.word(payload[0] ?? 0), ...table.read(payload, NFGENMSG_BYTES) };
}

/** The generation: a number that the kernel raises with every change to any table of the network namespace. */
const GENERATION = new AttributeTable('a generation', {
  id: required(1, u32be),
  /**
   * Who made it, in a notification; who asks, in a reply. It is the number of the thread, as the machine's first PID
   * namespace counts, and not what a process knows itself by.
   */
  processId: optional(2, u32be),
  processName: optional(3, text),
});
export type NftGeneration = ValueOf<typeof GENERATION>;

export function getGeneration(): NetlinkRequest {
  return nfnlRequest(NFNL_SUBSYS_NFTABLES, OPERATIONS.number('get generation'), 0, NFPROTO_UNSPEC);
}

export function decodeGeneration(payload: Uint8Array): NftGeneration {
  return GENERATION.read(payload, NFGENMSG_BYTES);
}

/** `undefined` where the kernel does not tell. */
export function readNftGeneration(): number | undefined {
  const [payload] = payloadsNow(NETLINK_NETFILTER, getGeneration());
  return payload && decodeGeneration(payload).id;
}

/*
 * User data: what the kernel keeps for programs without reading it. The program nft writes single-byte types and lengths
 * into it, and reads comments, and how a set is to be printed, out of it. Numbers from libnftnl/udata.h.
 */

/** Of tables, chains, rules and elements alike. */
const UDATA_COMMENT = 0;
/** More than this, nft refuses to read back: `comment too long, 128 characters maximum allowed`. */
const COMMENT_MAX_BYTES = 128;

const encoder = new TextEncoder();

export interface UserDatum {
  readonly type: number;
  readonly value: Uint8Array;
}

export function encodeUserData(data: readonly UserDatum[]): Uint8Array {
  const bytes = new Uint8Array(data.reduce((total, { value }) => total + 2 + value.length, 0));
  let offset = 0;
  for (const { type, value } of data) {
    if (value.length > 0xff) throw malformedMessage(`user data of ${value.length} bytes`);
    bytes.set([type, value.length], offset);
    bytes.set(value, offset + 2);
    offset += 2 + value.length;
  }
  return bytes;
}

/** `undefined` for what does not follow the convention: another program's. */
function decodeUserData(bytes: Uint8Array): readonly UserDatum[] | undefined {
  const data: UserDatum[] = [];
  for (let offset = 0; offset < bytes.length; ) {
    const [type, length] = bytes.subarray(offset);
    if (type === undefined || length === undefined || offset + 2 + length > bytes.length) return undefined;
    data.push({ type, value: bytes.subarray(offset + 2, offset + 2 + length) });
    offset += 2 + length;
  }
  return data;
}

/** NUL-terminated. What is too long is cut between two characters. */
export function commentText(comment: string): Uint8Array {
  const bytes = new Uint8Array(COMMENT_MAX_BYTES + 1);
  const { written } = encoder.encodeInto(comment, bytes.subarray(0, COMMENT_MAX_BYTES));
  return bytes.subarray(0, written + 1);
}

export function encodeComment(comment: string): Uint8Array {
  const { length } = comment;
  if (length > COMMENT_MAX_BYTES || !isAscii(comment))
    return encodeUserData([{ type: UDATA_COMMENT, value: commentText(comment) }]);
  // A start has tens of thousands of these.
  const bytes = new Uint8Array(length + 3);
  bytes[1] = length + 1;
  for (let index = 0; index < length; index++) bytes[index + 2] = comment.charCodeAt(index);
  return bytes;
}

export function decodeComment(userData: Uint8Array): string | undefined {
  const comment = decodeUserData(userData)?.find(({ type }) => type === UDATA_COMMENT);
  return comment && decodeText(comment.value);
}
