/** Tables: what a program owns is in one of its own. */
import { NLM_F_CREATE, decodeString, decodeU32be, decodeU64be, requiredAttribute } from '../codec.ts';
import type { NetlinkRequest } from '../socket.ts';
import {
  NFT_MSG_DELTABLE,
  NFT_MSG_GETTABLE,
  NFT_MSG_NEWTABLE,
  type NftFamily,
  type NftMessage,
  type TablePlace,
  nftMessage,
  received,
} from './message.ts';
import { decodeComment, encodeComment } from './userData.ts';

const NFTA_TABLE_NAME = 1;
const NFTA_TABLE_FLAGS = 2;
const NFTA_TABLE_USE = 3;
const NFTA_TABLE_HANDLE = 4;
const NFTA_TABLE_USERDATA = 6;
const NFTA_TABLE_OWNER = 7;

const NFT_TABLE_F_DORMANT = 0x1;
const NFT_TABLE_F_OWNER = 0x2;

export interface NewTable extends TablePlace {
  readonly kind: 'new table';
  readonly comment?: string;
  /** Only the socket that made it can change it, and it goes with that socket. */
  readonly isOwned?: boolean;
}

/** With all that is in it. */
export interface DeleteTable extends TablePlace {
  readonly kind: 'delete table';
}

export interface Table {
  readonly family: NftFamily | undefined;
  readonly name: string;
  readonly handle: bigint;
  readonly flags: number;
  /** Packets do not come to its chains. */
  readonly isDormant: boolean;
  /** Chains, sets and other objects in it. */
  readonly objects: number;
  /** The number of the socket whose own it is. */
  readonly owner: number | undefined;
  readonly comment: string | undefined;
}

/** One that is there already stays as it is, comment and all, but wakes up if it was dormant. */
export function newTable({ family, table, comment, isOwned = false }: NewTable): NftMessage {
  return nftMessage(NFT_MSG_NEWTABLE, NLM_F_CREATE, family, (writer) => {
    writer.string(NFTA_TABLE_NAME, table).u32be(NFTA_TABLE_FLAGS, isOwned ? NFT_TABLE_F_OWNER : 0);
    if (comment !== undefined) writer.attribute(NFTA_TABLE_USERDATA, encodeComment(comment));
  });
}

export function deleteTable({ family, table }: DeleteTable): NftMessage {
  return nftMessage(NFT_MSG_DELTABLE, 0, family, (writer) => writer.string(NFTA_TABLE_NAME, table));
}

/** Of one family. To be asked with `dump`. */
export function getTables(family: NftFamily): NetlinkRequest {
  return nftMessage(NFT_MSG_GETTABLE, 0, family, () => undefined);
}

export function getTable({ family, table }: TablePlace): NetlinkRequest {
  return nftMessage(NFT_MSG_GETTABLE, 0, family, (writer) => writer.string(NFTA_TABLE_NAME, table));
}

export function decodeTable(payload: Uint8Array): Table {
  const { family, attributes } = received(payload);
  const flagBytes = attributes.get(NFTA_TABLE_FLAGS);
  const flags = flagBytes ? decodeU32be(flagBytes) : 0;
  const objects = attributes.get(NFTA_TABLE_USE);
  const handle = attributes.get(NFTA_TABLE_HANDLE);
  const owner = attributes.get(NFTA_TABLE_OWNER);
  return {
    family,
    name: decodeString(requiredAttribute(attributes, NFTA_TABLE_NAME, 'the name of a table')),
    handle: handle ? decodeU64be(handle) : 0n,
    flags,
    isDormant: (flags & NFT_TABLE_F_DORMANT) > 0,
    objects: objects ? decodeU32be(objects) : 0,
    owner: owner && decodeU32be(owner),
    comment: decodeComment(attributes.get(NFTA_TABLE_USERDATA)),
  };
}
