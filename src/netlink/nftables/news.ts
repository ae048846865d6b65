/** What those hear who joined NFNLGRP_NFTABLES: each part of a transaction that was done, and then its generation. */
import type { Message } from '../codec.ts';
import { type Chain, decodeChain } from './chain.ts';
import { type ElementsOfSet, decodeElements } from './elements.ts';
import { type Generation, decodeGenerationNews } from './generation.ts';
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
  operationOf,
} from './message.ts';
import { type Rule, decodeRule } from './rule.ts';
import { type NftSet, decodeSet } from './set.ts';
import { type Table, decodeTable } from './table.ts';

export type NftNews =
  | { readonly kind: 'new table' | 'deleted table'; readonly table: Table }
  | { readonly kind: 'new chain' | 'deleted chain'; readonly chain: Chain }
  | { readonly kind: 'new rule' | 'deleted rule'; readonly rule: Rule }
  | { readonly kind: 'new set' | 'deleted set'; readonly set: NftSet }
  | { readonly kind: 'new elements' | 'deleted elements'; readonly elements: ElementsOfSet }
  | { readonly kind: 'new generation'; readonly generation: Generation }
  /** Objects and flow tables, of which there are none here. */
  | { readonly kind: 'other' };

export function decodeNews(message: Pick<Message, 'type' | 'payload'>): NftNews {
  const { payload } = message;
  switch (operationOf(message)) {
    case NFT_MSG_NEWTABLE:
      return { kind: 'new table', table: decodeTable(payload) };
    case NFT_MSG_DELTABLE:
      return { kind: 'deleted table', table: decodeTable(payload) };
    case NFT_MSG_NEWCHAIN:
      return { kind: 'new chain', chain: decodeChain(payload) };
    case NFT_MSG_DELCHAIN:
      return { kind: 'deleted chain', chain: decodeChain(payload) };
    case NFT_MSG_NEWRULE:
      return { kind: 'new rule', rule: decodeRule(payload) };
    case NFT_MSG_DELRULE:
      return { kind: 'deleted rule', rule: decodeRule(payload) };
    case NFT_MSG_NEWSET:
      return { kind: 'new set', set: decodeSet(payload) };
    case NFT_MSG_DELSET:
      return { kind: 'deleted set', set: decodeSet(payload) };
    case NFT_MSG_NEWSETELEM:
      return { kind: 'new elements', elements: decodeElements(payload) };
    case NFT_MSG_DELSETELEM:
      return { kind: 'deleted elements', elements: decodeElements(payload) };
    case NFT_MSG_NEWGEN:
      return { kind: 'new generation', generation: decodeGenerationNews(payload) };
    default:
      return { kind: 'other' };
  }
}
