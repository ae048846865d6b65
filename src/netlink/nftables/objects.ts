/** Tables, chains, rules and sets: what the kernel keeps of them. Numbers from linux/netfilter/nf_tables.h. */
import {
  AttributeTable,
  type ValueOf,
  list,
  emptyNest,
  nested,
  optional,
  required,
  withDefault,
} from '../attributes.ts';
import { bytes, i32be, milliseconds, text, u32be, u64be, words } from '../kinds.ts';
import type { NetlinkRequest } from '../socket.ts';
import { expressionKind, expressionList } from './expressions.ts';
import {
  type InFamily,
  type NftFamily,
  type OperationName,
  type TablePlace,
  commentKind,
  nftRequest,
  readMessage,
} from './message.ts';
import { decodeSetComment } from './setSpec.ts';

const NFT_TABLE_F_DORMANT = 0x1;
export const NFT_TABLE_F_OWNER = 0x2;

const TABLE_ATTRIBUTES = new AttributeTable('a table', {
  name: required(1, text),
  flags: withDefault(2, u32be, 0),
  /** Chains, sets and other objects in it. */
  objects: withDefault(3, u32be, 0),
  handle: withDefault(4, u64be, 0n),
  comment: optional(6, commentKind),
  /** The number of the socket whose own it is. */
  owner: optional(7, u32be),
});

/** enum nf_inet_hooks of linux/netfilter.h */
export const HOOKS = words({ prerouting: 0, input: 1, forward: 2, output: 3, postrouting: 4 });
export const POLICIES = words({ drop: 0, accept: 1 });
const CHAIN_TYPES = ['filter', 'nat', 'route'] as const;

const CHAIN_ATTRIBUTES = new AttributeTable('a chain', {
  table: required(1, text),
  name: required(3, text),
  hook: optional([4, 1], u32be),
  priority: optional([4, 2], i32be),
  policy: optional(5, u32be),
  type: optional(7, text),
  comment: optional(12, commentKind),
  handle: withDefault(2, u64be, 0n),
  /** Its rules, and the rules and elements that lead to it. */
  references: withDefault(6, u32be, 0),
});

const RULE_ATTRIBUTES = new AttributeTable('a rule', {
  table: required(1, text),
  chain: required(2, text),
  handle: withDefault(3, u64be, 0n),
  expressions: withDefault(4, expressionList, []),
  /** The handle of the rule before it. */
  after: optional(6, u64be),
  comment: optional(7, commentKind),
});

/** A set that is asked for or deleted. */
export const SET_NAME = new AttributeTable('a set', { table: required(1, text), name: required(2, text) });

const FIELD = new AttributeTable('a field', { bytes: required(1, u32be) });

export const SET_ATTRIBUTES = new AttributeTable('a set', {
  table: required(1, text),
  name: required(2, text),
  flags: withDefault(3, u32be, 0),
  keyType: withDefault(4, u32be, 0),
  keyBytes: withDefault(5, u32be, 0),
  dataType: optional(6, u32be),
  dataBytes: optional(7, u32be),
  /** Any number that no other set of the transaction has. */
  id: optional(10, u32be),
  description: emptyNest(9),
  size: optional([9, 1], u32be),
  /** Of a concatenation of intervals. */
  fields: optional([9, 2], list(nested(FIELD))),
  timeoutMs: optional(11, milliseconds),
  userData: withDefault(13, bytes, new Uint8Array()),
  /** Of each element: a counter. */
  expression: optional(17, expressionKind),
  handle: withDefault(16, u64be, 0n),
});

export interface KernelTable extends InFamily, ValueOf<typeof TABLE_ATTRIBUTES> {
  /** Packets do not come to its chains. */
  readonly isDormant: boolean;
}

export interface BaseChain {
  /** `nat` sees the first packet of each connection only. */
  readonly type: (typeof CHAIN_TYPES)[number];
  readonly hook: Parameters<(typeof HOOKS)['number']>[0];
  readonly priority: number;
  readonly policy: Parameters<(typeof POLICIES)['number']>[0];
}

export interface KernelChain
  extends InFamily,
    Pick<ValueOf<typeof CHAIN_ATTRIBUTES>, 'table' | 'name' | 'handle' | 'references' | 'comment'> {
  /** `undefined` also where its hook is none of ours. */
  readonly base: BaseChain | undefined;
  readonly isBase: boolean;
}

export type KernelRule = InFamily & ValueOf<typeof RULE_ATTRIBUTES>;

export type KernelSet = InFamily & ValueOf<typeof SET_ATTRIBUTES> & { readonly comment: string | undefined };

export interface ChainPlace extends TablePlace {
  readonly chain: string;
}

export function tableRequest(
  operation: OperationName,
  flags: number,
  { family, table }: TablePlace,
  more: Partial<ValueOf<typeof TABLE_ATTRIBUTES>> = {},
): NetlinkRequest {
  return nftRequest(operation, flags, family, TABLE_ATTRIBUTES, { ...more, name: table });
}

export function chainRequest(
  operation: OperationName,
  flags: number,
  { family, table, chain }: ChainPlace,
  more: Partial<ValueOf<typeof CHAIN_ATTRIBUTES>> = {},
): NetlinkRequest {
  return nftRequest(operation, flags, family, CHAIN_ATTRIBUTES, { ...more, table, name: chain });
}

export function ruleRequest(
  operation: OperationName,
  flags: number,
  { family, table, chain }: ChainPlace,
  more: Partial<ValueOf<typeof RULE_ATTRIBUTES>> = {},
): NetlinkRequest {
  return nftRequest(operation, flags, family, RULE_ATTRIBUTES, { ...more, table, chain });
}

/** Of one family. To be asked with `dump`. */
export function getTables(family: NftFamily): NetlinkRequest {
  return nftRequest('get table', 0, family);
}

export function getTable(place: TablePlace): NetlinkRequest {
  return tableRequest('get table', 0, place);
}

/** Of all tables of the family. To be asked with `dump`. */
export function getChains(family: NftFamily): NetlinkRequest {
  return nftRequest('get chain', 0, family);
}

/** Of all chains of the table or of one, in their order. To be asked with `dump`. A table that is not there has none. */
export function getRules({ family, table }: TablePlace, chain?: string): NetlinkRequest {
  return nftRequest('get rule', 0, family, RULE_ATTRIBUTES, {
    table,
    ...(chain !== undefined && { chain }),
  });
}

/** To be asked with `dump`. Refused with ENOENT where there is no such table. */
export function getSets({ family, table }: TablePlace): NetlinkRequest {
  return nftRequest('get set', 0, family, SET_NAME, { table });
}

export function decodeTable(payload: Uint8Array): KernelTable {
  const table = readMessage(TABLE_ATTRIBUTES, payload);
  return { ...table, isDormant: (table.flags & NFT_TABLE_F_DORMANT) > 0 };
}

export function decodeChain(payload: Uint8Array): KernelChain {
  const chain = readMessage(CHAIN_ATTRIBUTES, payload);
  const { family, table, name, handle, references, comment } = chain;
  const isBase = chain.hook !== undefined || chain.priority !== undefined;
  return { family, table, name, handle, references, comment, isBase, base: baseOf(chain) };
}

function baseOf(chain: ValueOf<typeof CHAIN_ATTRIBUTES>): BaseChain | undefined {
  const { priority } = chain;
  const hook = chain.hook === undefined ? undefined : HOOKS.word(chain.hook);
  const policy = POLICIES.word(chain.policy ?? POLICIES.number('accept'));
  const type = CHAIN_TYPES.find((each) => each === chain.type);
  return hook && policy && type && priority !== undefined ? { type, hook, priority, policy } : undefined;
}

export function decodeRule(payload: Uint8Array): KernelRule {
  return readMessage(RULE_ATTRIBUTES, payload);
}

export function decodeSet(payload: Uint8Array): KernelSet {
  const set = readMessage(SET_ATTRIBUTES, payload);
  return { ...set, comment: decodeSetComment(set.userData) };
}
