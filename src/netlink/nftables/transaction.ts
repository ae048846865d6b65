/**
 * Changes that the kernel makes all together or not at all, as data. They go out as one datagram between a message that
 * begins them and one that ends them. Numbers from linux/netfilter/nfnetlink.h.
 */
import { errnoName } from '../../system/libc.ts';
import { NLM_F_CREATE } from '../codec.ts';
import { NFNL_SUBSYS_NFTABLES, NFPROTO_UNSPEC } from '../generic.ts';
import { Exchange, type NetlinkRefusal, type NetlinkRequest, type Sequence } from '../request.ts';
import { type ElementList, elementsRequest, type SetPlace } from './elements.ts';
import type { Expression } from './expressions.ts';
import { nftRequest, type TablePlace } from './message.ts';
import {
  type BaseChain,
  CHAIN_ATTRIBUTES,
  type ChainPlace,
  NFT_TABLE_F_OWNER,
  NFT_TABLE_F_PERSIST,
  RULE_ATTRIBUTES,
  SET_ATTRIBUTES,
  TABLE_ATTRIBUTES,
} from './objects.ts';
import { propertiesOf, type SetSpec } from './setSpec.ts';

const NFNL_MSG_BATCH_BEGIN = 0x10;
const NFNL_MSG_BATCH_END = 0x11;
/** struct nfgenmsg, whose last two bytes name the subsystem here, big endian. */
const BATCH_HEADER = Uint8Array.of(NFPROTO_UNSPEC, 0, 0, NFNL_SUBSYS_NFTABLES);
/** Add at the end and not at the start. linux/netlink.h */
const NLM_F_APPEND = 0x800;

export type NftOperation =
  /** One that is there already stays as it is, comment and all, but wakes up if it was dormant. */
  | ({
      readonly kind: 'addTable';
      readonly comment?: string;
      /** Only the socket that made it can change it, and it is deleted with that socket. */
      readonly isOwned?: boolean;
      /** With `isOwned`: it outlives that socket, and then anybody can change it. */
      readonly isPersistent?: boolean;
    } & TablePlace)
  /** With all that is in it. */
  | ({ readonly kind: 'deleteTable' } & TablePlace)
  /** One that is there already stays, with its rules. */
  | ({ readonly kind: 'addChain'; readonly base?: BaseChain } & ChainPlace)
  /** Refused with EBUSY while a rule or a map leads to it. Its rules are deleted with it. */
  | ({ readonly kind: 'deleteChain' } & ChainPlace)
  /** All its rules; the chain stays. */
  | ({ readonly kind: 'flushChain' } & ChainPlace)
  /** At the end of its chain. */
  | ({ readonly kind: 'addRule'; readonly expressions: readonly Expression[] } & ChainPlace)
  /** One that is there already stays. */
  | ({ readonly kind: 'addSet'; readonly set: SetSpec } & TablePlace)
  /** Refused with EBUSY while a rule looks into it. */
  | ({ readonly kind: 'deleteSet' } & SetPlace)
  | ({
      /** An element that is there already stays as it is; one that has other data is EEXIST. */
      readonly kind: 'addElements';
      readonly elements: ElementList;
    } & SetPlace)
  /** Refused with ENOENT when one of them is not there. Only keys are looked at, and whether they end an interval. */
  | ({ readonly kind: 'deleteElements'; readonly elements: ElementList } & SetPlace);

/** What the kernel does as a whole or not at all, in one datagram. */
export type NetlinkTransaction = (sequence: Sequence) => {
  readonly exchange: Exchange;
  readonly result: () => CommitReply;
};

export type CommitReply =
  | { readonly state: 'done' }
  /** Nothing was done. */
  | { readonly state: 'refused'; readonly refusals: readonly CommitRefusal[] };

interface CommitRefusal extends Omit<NetlinkRefusal, 'kind'> {
  /** Its place in the transaction; `undefined` when it is the whole that was refused. */
  readonly operation: number | undefined;
}

export function transaction(operations: readonly NftOperation[]): NetlinkTransaction {
  return (sequence) => {
    const bytes = operations.reduce((sum, operation) => sum + roughBytes(operation), 1024);
    const exchange = new Exchange(sequence, bytes);
    const begin = exchange.add(batchMessage(NFNL_MSG_BATCH_BEGIN), 'first');
    const messages = operations.flatMap((operation, index) =>
      requestsOf(operation, index).map((message) => ({ message, index })),
    );
    const added = messages.map(({ message, index }, position) => ({
      // Also when something was refused before it, the last one is acknowledged, or refused itself.
      number: exchange.add(message, position < messages.length - 1 ? 'between' : 'last'),
      index,
    }));
    exchange.add(batchMessage(NFNL_MSG_BATCH_END), 'between');
    return {
      exchange,
      result: () => {
        const refusals = [{ number: begin, index: undefined }, ...added].flatMap(({ number, index }) => {
          const errno = exchange.errnoOf(number);
          return errno === 0 ? [] : [{ operation: index, errno, name: errnoName(errno) }];
        });
        return refusals.length === 0 ? { state: 'done' } : { state: 'refused', refusals };
      },
    };
  };
}

function batchMessage(type: number): NetlinkRequest {
  return { type, flags: 0, payload: (writer) => writer.raw(BATCH_HEADER) };
}

/** `index` is its place in the transaction. Elements may take several messages. */
export function requestsOf(operation: NftOperation, index: number): readonly NetlinkRequest[] {
  const { family, table } = operation;
  switch (operation.kind) {
    case 'addTable': {
      const { comment, isOwned, isPersistent } = operation;
      const flags = (isOwned ? NFT_TABLE_F_OWNER : 0) | (isPersistent ? NFT_TABLE_F_PERSIST : 0);
      const fields = { name: table, flags, comment };
      return [nftRequest('new table', NLM_F_CREATE, family, TABLE_ATTRIBUTES, fields)];
    }
    case 'deleteTable':
      return [nftRequest('delete table', 0, family, TABLE_ATTRIBUTES, { name: table })];
    case 'addChain': {
      const fields = { table, name: operation.chain, ...operation.base };
      return [nftRequest('new chain', NLM_F_CREATE, family, CHAIN_ATTRIBUTES, fields)];
    }
    case 'deleteChain':
      return [nftRequest('delete chain', 0, family, CHAIN_ATTRIBUTES, { table, name: operation.chain })];
    case 'addRule':
      return [nftRequest('new rule', NLM_F_CREATE | NLM_F_APPEND, family, RULE_ATTRIBUTES, operation)];
    case 'flushChain':
      return [nftRequest('delete rule', 0, family, RULE_ATTRIBUTES, operation)];
    case 'addSet': {
      const fields = { table, name: operation.set.name, id: index + 1, ...propertiesOf(operation.set) };
      return [nftRequest('new set', NLM_F_CREATE, family, SET_ATTRIBUTES, fields)];
    }
    case 'deleteSet':
      return [nftRequest('delete set', 0, family, SET_ATTRIBUTES, { table, name: operation.set })];
    case 'addElements':
    case 'deleteElements': {
      const isNew = operation.kind === 'addElements';
      const [name, flags] = isNew
        ? (['new elements', NLM_F_CREATE] as const)
        : (['delete elements', 0] as const);
      return Array.from(operation.elements.messages(), (encoded) =>
        elementsRequest(name, flags, operation, encoded),
      );
    }
  }
}

/** Enough for most, so that the buffer need not grow. */
function roughBytes(operation: NftOperation): number {
  return 'elements' in operation ? operation.elements.length + (operation.elements.length >> 8) + 256 : 512;
}
