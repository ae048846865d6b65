/** Rules: lists of expressions. */
import { NLM_F_CREATE, decodeString, decodeU64be, requiredAttribute } from '../codec.ts';
import type { NetlinkRequest } from '../socket.ts';
import type { ChainPlace } from './chain.ts';
import { type Expression, decodeExpressions, writeExpressions } from './expressions/expression.ts';
import {
  NFT_MSG_DELRULE,
  NFT_MSG_GETRULE,
  NFT_MSG_NEWRULE,
  NLM_F_APPEND,
  type NftFamily,
  type NftMessage,
  type TablePlace,
  nftMessage,
  received,
} from './message.ts';
import { decodeComment, encodeComment } from './userData.ts';

const NFTA_RULE_TABLE = 1;
const NFTA_RULE_CHAIN = 2;
const NFTA_RULE_HANDLE = 3;
const NFTA_RULE_EXPRESSIONS = 4;
const NFTA_RULE_POSITION = 6;
const NFTA_RULE_USERDATA = 7;

/** At the end of its chain, or right behind another rule. */
export interface NewRule extends ChainPlace {
  readonly kind: 'new rule';
  readonly expressions: readonly Expression[];
  readonly comment?: string;
  /** The handle of the rule before it. */
  readonly after?: bigint;
}

export interface DeleteRule extends ChainPlace {
  readonly kind: 'delete rule';
  readonly handle: bigint;
}

/** All its rules; the chain stays. */
export interface FlushChain extends ChainPlace {
  readonly kind: 'flush chain';
}

export interface Rule {
  readonly family: NftFamily | undefined;
  readonly table: string;
  readonly chain: string;
  readonly handle: bigint;
  readonly expressions: readonly Expression[];
  readonly comment: string | undefined;
}

export function newRule({ expressions, comment, after, ...place }: NewRule): NftMessage {
  return ruleMessage(NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND, place, (writer) => {
    writer.nested(NFTA_RULE_EXPRESSIONS, (list) => writeExpressions(list, expressions));
    if (after !== undefined) writer.u64be(NFTA_RULE_POSITION, after);
    if (comment !== undefined) writer.attribute(NFTA_RULE_USERDATA, encodeComment(comment));
  });
}

export function deleteRule({ handle, ...place }: DeleteRule): NftMessage {
  return ruleMessage(NFT_MSG_DELRULE, 0, place, (writer) => writer.u64be(NFTA_RULE_HANDLE, handle));
}

export function flushChain(place: FlushChain): NftMessage {
  return ruleMessage(NFT_MSG_DELRULE, 0, place, () => undefined);
}

/** Of all chains of the table or of one, in their order. To be asked with `dump`. A table that is not there has none. */
export function getRules({ family, table }: TablePlace, chain?: string): NetlinkRequest {
  return nftMessage(NFT_MSG_GETRULE, 0, family, (writer) => {
    writer.string(NFTA_RULE_TABLE, table);
    if (chain !== undefined) writer.string(NFTA_RULE_CHAIN, chain);
  });
}

export function decodeRule(payload: Uint8Array): Rule {
  const { family, attributes } = received(payload);
  const expressions = attributes.get(NFTA_RULE_EXPRESSIONS);
  const handle = attributes.get(NFTA_RULE_HANDLE);
  return {
    family,
    table: decodeString(requiredAttribute(attributes, NFTA_RULE_TABLE, 'the table of a rule')),
    chain: decodeString(requiredAttribute(attributes, NFTA_RULE_CHAIN, 'the chain of a rule')),
    handle: handle ? decodeU64be(handle) : 0n,
    expressions: expressions ? decodeExpressions(expressions) : [],
    comment: decodeComment(attributes.get(NFTA_RULE_USERDATA)),
  };
}

function ruleMessage(
  operation: number,
  flags: number,
  { family, table, chain }: ChainPlace,
  body: NftMessage['payload'],
): NftMessage {
  return nftMessage(operation, flags, family, (writer) =>
    body(writer.string(NFTA_RULE_TABLE, table).string(NFTA_RULE_CHAIN, chain)),
  );
}
