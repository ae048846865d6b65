/**
 * What a socket in NFNLGRP_NFTABLES is notified of: each part of a transaction that was done, and then its generation.
 */
import { AttributeTable, optional } from '../attributes.ts';
import type { Message } from '../codec.ts';
import { text } from '../kinds.ts';
import { NFGENMSG_BYTES } from '../nfnetlink.ts';
import { type ElementsOfSet, decodeElements } from './elements.ts';
import {
  NFT_MSG_DELCHAIN,
  NFT_MSG_DELRULE,
  NFT_MSG_DELSET,
  NFT_MSG_DELSETELEM,
  NFT_MSG_DELTABLE,
  NFT_MSG_NEWCHAIN,
  NFT_MSG_NEWGEN,
  NFT_MSG_NEWRULE,
  NFT_MSG_NEWSET,
  NFT_MSG_NEWSETELEM,
  NFT_MSG_NEWTABLE,
  type NftGeneration,
  decodeGeneration,
  operationOf,
} from './message.ts';
import {
  type NftChain,
  type NftRule,
  type NftSet,
  type NftTable,
  decodeChain,
  decodeRule,
  decodeSet,
  decodeTable,
} from './objects.ts';

export type NftNotification =
  | { readonly kind: 'new table' | 'deleted table'; readonly table: NftTable }
  | { readonly kind: 'new chain' | 'deleted chain'; readonly chain: NftChain }
  | { readonly kind: 'new rule' | 'deleted rule'; readonly rule: NftRule }
  | { readonly kind: 'new set' | 'deleted set'; readonly set: NftSet }
  | { readonly kind: 'new elements' | 'deleted elements'; readonly elements: ElementsOfSet }
  | { readonly kind: 'new generation'; readonly generation: NftGeneration }
  /** Objects and flow tables, of which there are none here. */
  | { readonly kind: 'other' };

const KINDS: Readonly<Record<number, Exclude<NftNotification['kind'], 'other'>>> = {
  [NFT_MSG_NEWTABLE]: 'new table',
  [NFT_MSG_DELTABLE]: 'deleted table',
  [NFT_MSG_NEWCHAIN]: 'new chain',
  [NFT_MSG_DELCHAIN]: 'deleted chain',
  [NFT_MSG_NEWRULE]: 'new rule',
  [NFT_MSG_DELRULE]: 'deleted rule',
  [NFT_MSG_NEWSET]: 'new set',
  [NFT_MSG_DELSET]: 'deleted set',
  [NFT_MSG_NEWSETELEM]: 'new elements',
  [NFT_MSG_DELSETELEM]: 'deleted elements',
  [NFT_MSG_NEWGEN]: 'new generation',
};

export function decodeNotification(message: Pick<Message, 'type' | 'payload'>): NftNotification {
  const { payload } = message;
  const kind = KINDS[operationOf(message) ?? -1];
  switch (kind) {
    case 'new table':
    case 'deleted table':
      return { kind, table: decodeTable(payload) };
    case 'new chain':
    case 'deleted chain':
      return { kind, chain: decodeChain(payload) };
    case 'new rule':
    case 'deleted rule':
      return { kind, rule: decodeRule(payload) };
    case 'new set':
    case 'deleted set':
      return { kind, set: decodeSet(payload) };
    case 'new elements':
    case 'deleted elements':
      return { kind, elements: decodeElements(payload) };
    case 'new generation':
      return { kind, generation: decodeGeneration(payload) };
    default:
      return { kind: 'other' };
  }
}

const CHAIN_NAMES = new AttributeTable('a chain', { table: optional(1, text), chain: optional(3, text) });
const RULE_NAMES = new AttributeTable('a rule', { table: optional(1, text), chain: optional(2, text) });

/** The table and the chain that a message about a table, a chain or a rule names. A flush has a great many of these. */
export function namesIn(message: Pick<Message, 'type' | 'payload'>): {
  readonly table?: string | undefined;
  readonly chain?: string | undefined;
} {
  const operation = operationOf(message) ?? 0;
  const names = operation >= NFT_MSG_NEWRULE ? RULE_NAMES : CHAIN_NAMES;
  return names.read(message.payload, NFGENMSG_BYTES);
}
