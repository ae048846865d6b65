/** Tables, chains, rules and sets: what the kernel keeps of them. Numbers from linux/netfilter/nf_tables.h. */
import {
  AttributeTable,
  list,
  nested,
  optional,
  required,
  type ValueOf,
  withDefault,
} from '../attributes.ts';
import { bytes, i32be, ifKnown, milliseconds, text, u32be, u64be, words } from '../kinds.ts';
import type { NetlinkRequest } from '../request.ts';
import { expressionKind, expressionList } from './expressions.ts';
import {
  commentKind,
  type MessageOf,
  type NftFamily,
  nftRequest,
  readMessage,
  type TablePlace,
} from './message.ts';

export const NFT_TABLE_F_DORMANT = 0x1;
export const NFT_TABLE_F_OWNER = 0x2;
/** Outlives its owner. Since Linux 6.9. */
export const NFT_TABLE_F_PERSIST = 0x4;

export const TABLE_ATTRIBUTES = new AttributeTable('a table', {
  name: required(1, text),
  flags: withDefault(2, u32be, 0),
  /** Chains, sets and other objects in it. */
  objects: withDefault(3, u32be, 0),
  comment: optional(6, commentKind),
  /** The number of the socket whose own it is. */
  owner: optional(7, u32be),
});

/** enum nf_inet_hooks of linux/netfilter.h */
const HOOKS = words({ prerouting: 0, input: 1, forward: 2, output: 3, postrouting: 4 });
const POLICIES = words({ drop: 0, accept: 1 });
const CHAIN_TYPES = ['filter', 'nat', 'route'] as const;

export const CHAIN_ATTRIBUTES = new AttributeTable('a chain', {
  table: required(1, text),
  name: required(3, text),
  hook: optional([4, 1], ifKnown(HOOKS)),
  priority: optional([4, 2], i32be),
  policy: optional(5, ifKnown(POLICIES)),
  type: optional(7, text),
  /** Its rules, and the rules and elements that lead to it. */
  references: withDefault(6, u32be, 0),
});

export const RULE_ATTRIBUTES = new AttributeTable('a rule', {
  table: required(1, text),
  chain: required(2, text),
  handle: withDefault(3, u64be, 0n),
  expressions: withDefault(4, expressionList, []),
  comment: optional(7, commentKind),
});

const FIELD = new AttributeTable('a field', { bytes: required(1, u32be) });
const DESCRIPTION = new AttributeTable('a set', {
  size: optional(1, u32be),
  /** Of a concatenation of intervals. */
  fields: optional(2, list(nested(FIELD))),
});

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
  description: withDefault(9, nested(DESCRIPTION), {}),
  timeoutMs: optional(11, milliseconds),
  userData: withDefault(13, bytes, new Uint8Array()),
  /** Of each element: a counter. */
  expression: optional(17, expressionKind),
});

export interface KernelTable extends MessageOf<typeof TABLE_ATTRIBUTES> {
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

interface KernelChain
  extends Pick<MessageOf<typeof CHAIN_ATTRIBUTES>, 'family' | 'table' | 'name' | 'references'> {
  /** `undefined` also where its hook is none of ours. */
  readonly base: BaseChain | undefined;
  readonly isBase: boolean;
}

export interface ChainPlace extends TablePlace {
  readonly chain: string;
}

/** Of one family. To be asked with `dump`. */
export function getTables(family: NftFamily): NetlinkRequest {
  return nftRequest('get table', 0, family);
}

export function getTable({ family, table }: TablePlace): NetlinkRequest {
  return nftRequest('get table', 0, family, TABLE_ATTRIBUTES, { name: table });
}

/** Of all tables of the family. To be asked with `dump`. */
export function getChains(family: NftFamily): NetlinkRequest {
  return nftRequest('get chain', 0, family);
}

/** Refused with ENOENT where there is no such chain. */
export function getChain({ family, table, chain }: ChainPlace): NetlinkRequest {
  return nftRequest('get chain', 0, family, CHAIN_ATTRIBUTES, { table, name: chain });
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
  return nftRequest('get set', 0, family, SET_ATTRIBUTES, { table });
}

/** Refused with ENOENT where there is no such set. */
export function getSet({ family, table, set }: TablePlace & { readonly set: string }): NetlinkRequest {
  return nftRequest('get set', 0, family, SET_ATTRIBUTES, { table, name: set });
}

export function decodeTable(payload: Uint8Array): KernelTable {
  const table = readMessage(TABLE_ATTRIBUTES, payload);
  return { ...table, isDormant: (table.flags & NFT_TABLE_F_DORMANT) > 0 };
}

export function decodeChain(payload: Uint8Array): KernelChain {
  const chain = readMessage(CHAIN_ATTRIBUTES, payload);
  const { family, table, name, references } = chain;
  const isBase = chain.hook !== undefined || chain.priority !== undefined;
  return { family, table, name, references, isBase, base: baseOf(chain) };
}

function baseOf(chain: ValueOf<typeof CHAIN_ATTRIBUTES>): BaseChain | undefined {
  const { hook, priority, policy = 'accept' } = chain;
  const type = CHAIN_TYPES.find((each) => each === chain.type);
  return hook && type && priority !== undefined ? { type, hook, priority, policy } : undefined;
}

export function decodeRule(payload: Uint8Array): MessageOf<typeof RULE_ATTRIBUTES> {
  return readMessage(RULE_ATTRIBUTES, payload);
}

export function decodeSet(payload: Uint8Array): MessageOf<typeof SET_ATTRIBUTES> {
  return readMessage(SET_ATTRIBUTES, payload);
}
