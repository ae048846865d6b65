/** Chains: lists of rules. A base chain is where packets come in; any other is entered from a rule. */
import {
  NLM_F_CREATE,
  attributesByType,
  decodeString,
  decodeU32be,
  decodeU64be,
  requiredAttribute,
} from '../codec.ts';
import type { NetlinkRequest } from '../socket.ts';
import {
  NFT_MSG_DELCHAIN,
  NFT_MSG_GETCHAIN,
  NFT_MSG_NEWCHAIN,
  type NftFamily,
  type NftMessage,
  type TablePlace,
  nftMessage,
  received,
} from './message.ts';
import { names } from './names.ts';
import { decodeComment, encodeComment } from './userData.ts';

const NFTA_CHAIN_TABLE = 1;
const NFTA_CHAIN_HANDLE = 2;
const NFTA_CHAIN_NAME = 3;
const NFTA_CHAIN_HOOK = 4;
const NFTA_CHAIN_POLICY = 5;
const NFTA_CHAIN_USE = 6;
const NFTA_CHAIN_TYPE = 7;
const NFTA_CHAIN_USERDATA = 12;
const NFTA_HOOK_HOOKNUM = 1;
const NFTA_HOOK_PRIORITY = 2;

export type Hook = 'prerouting' | 'input' | 'forward' | 'output' | 'postrouting';
export type Policy = 'drop' | 'accept';

export interface BaseChain {
  /** `nat` sees the first packet of each connection only. */
  readonly type: 'filter' | 'nat' | 'route';
  readonly hook: Hook;
  readonly priority: number;
  readonly policy: Policy;
}

export interface ChainPlace extends TablePlace {
  readonly chain: string;
}

export interface NewChain extends ChainPlace {
  readonly kind: 'new chain';
  readonly base?: BaseChain;
  readonly comment?: string;
}

/** Refused with EBUSY while a rule or a map leads to it. Its rules go with it. */
export interface DeleteChain extends ChainPlace {
  readonly kind: 'delete chain';
}

export interface Chain {
  readonly family: NftFamily | undefined;
  readonly table: string;
  readonly name: string;
  readonly handle: bigint;
  /** `undefined` also where its hook is none of ours. */
  readonly base: BaseChain | undefined;
  readonly isBase: boolean;
  /** Its rules, and the rules and elements that lead to it. */
  readonly references: number;
  readonly comment: string | undefined;
}

/** enum nf_inet_hooks of linux/netfilter.h */
const HOOKS = names<Hook>({ prerouting: 0, input: 1, forward: 2, output: 3, postrouting: 4 });
const POLICIES = names<Policy>({ drop: 0, accept: 1 });
const TYPES: readonly string[] = ['filter', 'nat', 'route'] satisfies readonly BaseChain['type'][];

/** One that is there already stays, with its rules. */
export function newChain({ family, table, chain, base, comment }: NewChain): NftMessage {
  return nftMessage(NFT_MSG_NEWCHAIN, NLM_F_CREATE, family, (writer) => {
    writer.string(NFTA_CHAIN_TABLE, table).string(NFTA_CHAIN_NAME, chain);
    if (base) {
      writer
        .nested(NFTA_CHAIN_HOOK, (hook) =>
          hook
            .u32be(NFTA_HOOK_HOOKNUM, HOOKS.number(base.hook))
            .u32be(NFTA_HOOK_PRIORITY, base.priority >>> 0),
        )
        .u32be(NFTA_CHAIN_POLICY, POLICIES.number(base.policy))
        .string(NFTA_CHAIN_TYPE, base.type);
    }
    if (comment !== undefined) writer.attribute(NFTA_CHAIN_USERDATA, encodeComment(comment));
  });
}

export function deleteChain({ family, table, chain }: DeleteChain): NftMessage {
  return nftMessage(NFT_MSG_DELCHAIN, 0, family, (writer) =>
    writer.string(NFTA_CHAIN_TABLE, table).string(NFTA_CHAIN_NAME, chain),
  );
}

/** Of all tables of the family. To be asked with `dump`. */
export function getChains(family: NftFamily): NetlinkRequest {
  return nftMessage(NFT_MSG_GETCHAIN, 0, family, () => undefined);
}

export function decodeChain(payload: Uint8Array): Chain {
  const { family, attributes } = received(payload);
  const number = (type: number): number | undefined => {
    const value = attributes.get(type);
    return value && decodeU32be(value);
  };
  const handle = attributes.get(NFTA_CHAIN_HANDLE);
  const hook = attributes.get(NFTA_CHAIN_HOOK);
  const type = attributes.get(NFTA_CHAIN_TYPE);
  return {
    family,
    table: decodeString(requiredAttribute(attributes, NFTA_CHAIN_TABLE, 'the table of a chain')),
    name: decodeString(requiredAttribute(attributes, NFTA_CHAIN_NAME, 'the name of a chain')),
    handle: handle ? decodeU64be(handle) : 0n,
    base: hook && type && decodeBase(hook, decodeString(type), number(NFTA_CHAIN_POLICY)),
    isBase: hook !== undefined,
    references: number(NFTA_CHAIN_USE) ?? 0,
    comment: decodeComment(attributes.get(NFTA_CHAIN_USERDATA)),
  };
}

function decodeBase(bytes: Uint8Array, type: string, policyNumber = 1): BaseChain | undefined {
  const attributes = attributesByType(bytes);
  const number = (attribute: number, what: string): number =>
    decodeU32be(requiredAttribute(attributes, attribute, what));
  const hook = HOOKS.name(number(NFTA_HOOK_HOOKNUM, 'the hook of a chain'));
  const priority = number(NFTA_HOOK_PRIORITY, 'the priority of a chain') | 0;
  const policy = POLICIES.name(policyNumber);
  return hook && policy && isType(type) ? { type, hook, priority, policy } : undefined;
}

function isType(text: string): text is BaseChain['type'] {
  return TYPES.includes(text);
}
