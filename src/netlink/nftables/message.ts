/** What all messages of nf_tables have in common. Numbers from linux/netfilter/nf_tables.h. */
import { AttributeTable, type Rows, type ValueOf, optional, required } from '../attributes.ts';
import { type Kind, bytesAt, text, u32be, words } from '../kinds.ts';
import { NFGENMSG_BYTES, NFNL_SUBSYS_NFTABLES, NFPROTO_UNSPEC, nfnlRequest } from '../nfnetlink.ts';
import { NETLINK_NETFILTER, type NetlinkRequest, requestOnce } from '../socket.ts';
import { decodeComment, encodeComment } from './userData.ts';

export const NFT_MSG_NEWTABLE = 0;
export const NFT_MSG_GETTABLE = 1;
export const NFT_MSG_DELTABLE = 2;
export const NFT_MSG_NEWCHAIN = 3;
export const NFT_MSG_GETCHAIN = 4;
export const NFT_MSG_DELCHAIN = 5;
export const NFT_MSG_NEWRULE = 6;
export const NFT_MSG_GETRULE = 7;
export const NFT_MSG_DELRULE = 8;
export const NFT_MSG_NEWSET = 9;
export const NFT_MSG_GETSET = 10;
export const NFT_MSG_DELSET = 11;
export const NFT_MSG_NEWSETELEM = 12;
export const NFT_MSG_GETSETELEM = 13;
export const NFT_MSG_DELSETELEM = 14;
export const NFT_MSG_NEWGEN = 15;
const NFT_MSG_GETGEN = 16;

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
export const comment: Kind<string> = {
  write: (writer, type, value) => writer.attribute(type, encodeComment(value)),
  read: (view, start, end) => decodeComment(bytesAt(view, start, end)),
};

/** Without a table, it asks for everything of a family. */
export function nftRequest<R extends Rows>(
  operation: number,
  flags: number,
  family: NftFamily,
  table?: AttributeTable<R>,
  value: Partial<ValueOf<AttributeTable<R>>> = {},
): NetlinkRequest {
  return nfnlRequest(NFNL_SUBSYS_NFTABLES, operation, flags, NFT_FAMILIES.number(family), (writer) =>
    table?.write(writer, value),
  );
}

/** The operation of a message, `undefined` when it is another subsystem's. */
export function operationOf({ type }: { readonly type: number }): number | undefined {
  return type >> 8 === NFNL_SUBSYS_NFTABLES ? type & 0xff : undefined;
}

/** `undefined` for a family that is newer than this program. */
export function nftFamilyOf(payload: Uint8Array): NftFamily | undefined {
  return NFT_FAMILIES.word(payload[0] ?? 0);
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
  return nfnlRequest(NFNL_SUBSYS_NFTABLES, NFT_MSG_GETGEN, 0, NFPROTO_UNSPEC);
}

export function decodeGeneration(payload: Uint8Array): NftGeneration {
  return GENERATION.read(payload, NFGENMSG_BYTES);
}

/** `undefined` where the kernel does not tell. */
export function readNftGeneration(): number | undefined {
  const reply = requestOnce(NETLINK_NETFILTER, getGeneration());
  const [message] = typeof reply === 'object' && reply.kind === 'answered' ? reply.messages : [];
  return message && decodeGeneration(message.payload).id;
}
