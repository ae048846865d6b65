/**
 * What a socket in NFNLGRP_NFTABLES is notified of: each part of a transaction that was done, and then its generation.
 */
import { AttributeTable, optional } from '../attributes.ts';
import type { Message } from '../codec.ts';
import { text } from '../kinds.ts';
import { NFGENMSG_BYTES } from '../generic.ts';
import { decodeElements } from './elements.ts';
import { decodeGeneration, type NftGeneration, operationOf } from './message.ts';
import { decodeChain, decodeRule, decodeSet, decodeTable } from './objects.ts';

const DECODERS = {
  table: decodeTable,
  chain: decodeChain,
  rule: decodeRule,
  set: decodeSet,
  elements: decodeElements,
} as const;
type ObjectKind = keyof typeof DECODERS;

export type NftNotification =
  /** `{ kind: 'new chain', chain }`, `{ kind: 'deleted chain', chain }` */
  | {
      [Kind in ObjectKind]: {
        readonly kind: `new ${Kind}` | `deleted ${Kind}`;
      } & Readonly<Record<Kind, ReturnType<(typeof DECODERS)[Kind]>>>;
    }[ObjectKind]
  | { readonly kind: 'new generation'; readonly generation: NftGeneration }
  /** Objects and flow tables, of which there are none here. */
  | { readonly kind: 'other' };

export function decodeNotification(message: Pick<Message, 'type' | 'payload'>): NftNotification {
  const operation = operationOf(message);
  if (operation === 'new generation')
    return { kind: operation, generation: decodeGeneration(message.payload) };
  const [verb, object] = operation?.split(' ') ?? [];
  if (object === undefined || verb === 'get' || !isObjectKind(object)) return { kind: 'other' };
  const kind = `${verb === 'new' ? verb : 'deleted'} ${object}`;
  return { kind, [object]: DECODERS[object](message.payload) } as unknown as NftNotification;
}

function isObjectKind(text: string): text is ObjectKind {
  return text in DECODERS;
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
