/** What all messages of nf_tables have in common. Numbers from linux/netfilter/nf_tables.h. */
import { type MessageWriter, afterHeader, attributesByType } from '../codec.ts';
import { NFGENMSG_BYTES, NFNL_SUBSYS_NFTABLES, nfgenmsg, nfnlType } from '../nfnetlink.ts';
import type { NetlinkRequest } from '../socket.ts';
import { names } from './names.ts';

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
export const NFT_MSG_GETGEN = 16;

/** The group of those who want to hear of every change. linux/netfilter/nfnetlink.h */
export const NFNLGRP_NFTABLES = 7;

/** Add at the end and not at the start. linux/netlink.h */
export const NLM_F_APPEND = 0x800;

export type NftFamily = 'ip' | 'ip6' | 'inet' | 'arp' | 'bridge' | 'netdev';

/** NFPROTO_* of linux/netfilter.h */
export const FAMILIES = names<NftFamily>({ inet: 1, ip: 2, arp: 3, netdev: 5, bridge: 7, ip6: 10 });

/** In which table something is. */
export interface TablePlace {
  readonly family: NftFamily;
  readonly table: string;
}

/** One message of a transaction, without its sequence number. */
export type NftMessage = NetlinkRequest;

export function nftMessage(
  operation: number,
  flags: number,
  family: NftFamily,
  body: (writer: MessageWriter) => void,
): NftMessage {
  return {
    type: nfnlType(NFNL_SUBSYS_NFTABLES, operation),
    flags,
    payload: (writer) => body(writer.raw(nfgenmsg(FAMILIES.number(family)))),
  };
}

/** The operation of a message, `undefined` when it is another subsystem's. */
export function operationOf({ type }: { readonly type: number }): number | undefined {
  return type >> 8 === NFNL_SUBSYS_NFTABLES ? type & 0xff : undefined;
}

export interface Received {
  /** `undefined` for a family that is newer than this program. */
  readonly family: NftFamily | undefined;
  readonly attributes: ReadonlyMap<number, Uint8Array>;
}

export function received(payload: Uint8Array): Received {
  const attributes = attributesByType(afterHeader(payload, NFGENMSG_BYTES));
  return { family: FAMILIES.name(payload[0] ?? 0), attributes };
}
