/**
 * What a socket in NFNLGRP_NFTABLES is notified of: each part of a transaction that was done, and then its generation.
 */
import { AttributeTable, optional } from '../attributes.ts';
import type { Message } from '../codec.ts';
import { text } from '../kinds.ts';
import { NFGENMSG_BYTES } from '../nfnetlink.ts';
import { type ElementsOfSet, decodeElements } from './elements.ts';
import { type NftGeneration, decodeGeneration, operationOf } from './message.ts';
import {
  type KernelChain,
  type KernelRule,
  type KernelSet,
  type KernelTable,
  decodeChain,
  decodeRule,
  decodeSet,
  decodeTable,
} from './objects.ts';

export type NftNotification =
  | { readonly kind: 'new table' | 'deleted table'; readonly table: KernelTable }
  | { readonly kind: 'new chain' | 'deleted chain'; readonly chain: KernelChain }
  | { readonly kind: 'new rule' | 'deleted rule'; readonly rule: KernelRule }
  | { readonly kind: 'new set' | 'deleted set'; readonly set: KernelSet }
  | { readonly kind: 'new elements' | 'deleted elements'; readonly elements: ElementsOfSet }
  | { readonly kind: 'new generation'; readonly generation: NftGeneration }
  /** Objects and flow tables, of which there are none here. */
  | { readonly kind: 'other' };

export function decodeNotification(message: Pick<Message, 'type' | 'payload'>): NftNotification {
  const { payload } = message;
  const operation = operationOf(message);
  switch (operation) {
    case 'new table':
    case 'delete table':
      return { kind: operation === 'new table' ? operation : 'deleted table', table: decodeTable(payload) };
    case 'new chain':
    case 'delete chain':
      return { kind: operation === 'new chain' ? operation : 'deleted chain', chain: decodeChain(payload) };
    case 'new rule':
    case 'delete rule':
      return { kind: operation === 'new rule' ? operation : 'deleted rule', rule: decodeRule(payload) };
    case 'new set':
    case 'delete set':
      return { kind: operation === 'new set' ? operation : 'deleted set', set: decodeSet(payload) };
    case 'new elements':
    case 'delete elements': {
      const kind = operation === 'new elements' ? operation : 'deleted elements';
      return { kind, elements: decodeElements(payload) };
    }
    case 'new generation':
      return { kind: operation, generation: decodeGeneration(payload) };
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
  const operation = operationOf(message);
  const names = operation === 'new rule' || operation === 'delete rule' ? RULE_NAMES : CHAIN_NAMES;
  return names.read(message.payload, NFGENMSG_BYTES);
}
