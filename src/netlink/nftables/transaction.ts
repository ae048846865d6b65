/**
 * Changes that the kernel makes all together or not at all, as data. They go out as one datagram between a message that
 * begins them and one that ends them. Numbers from linux/netfilter/nfnetlink.h.
 */
import { errnoName } from '../../system/libc.ts';
import { decodeErrno, MessageWriter, NLM_F_CREATE, NLMSG_ERROR } from '../codec.ts';
import { u32be } from '../kinds.ts';
import { NFNL_SUBSYS_NFTABLES, NFPROTO_UNSPEC } from '../generic.ts';
import {
  type Job,
  type NetlinkRefusal,
  type NetlinkRequest,
  type Sequence,
  writeMessage,
} from '../request.ts';
import type { ElementList } from './elementList.ts';
import { elementsRequest, type SetPlace } from './elements.ts';
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
const NFNL_BATCH_GENID = 1;
/** What a generation is refused with that is over. Node has no name for it. */
const ERESTART = 85;
/** struct nfgenmsg, whose last two bytes name the subsystem here, big endian. */
const BATCH_HEADER = Uint8Array.of(NFPROTO_UNSPEC, 0, 0, NFNL_SUBSYS_NFTABLES);
/** Add at the end and not at the start. linux/netlink.h */
export const NLM_F_APPEND = 0x800;

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
  | ({ readonly kind: 'addChain'; readonly base?: BaseChain; readonly comment?: string } & ChainPlace)
  /** Refused with EBUSY while a rule or a map leads to it. Its rules are deleted with it. */
  | ({ readonly kind: 'deleteChain' } & ChainPlace)
  /** All its rules; the chain stays. */
  | ({ readonly kind: 'flushChain' } & ChainPlace)
  /** At the end of its chain. */
  | ({
      readonly kind: 'addRule';
      readonly expressions: readonly Expression[];
      readonly comment?: string;
    } & ChainPlace)
  | ({ readonly kind: 'deleteRule'; readonly handle: bigint } & ChainPlace)
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

/** A job that the kernel does as a whole or not at all, in one datagram or none. */
export type NetlinkTransaction = (sequence: Sequence) => Job<CommitReply>;

export type CommitReply =
  | { readonly state: 'done' }
  /** Nothing was done: the kernel is at another generation than the transaction was made for. */
  | { readonly state: 'outdated' }
  /** Nothing was done. */
  | { readonly state: 'refused'; readonly refusals: readonly CommitRefusal[] };

export interface CommitRefusal extends Omit<NetlinkRefusal, 'kind'> {
  /** Its place in the transaction; `undefined` when it is the whole that was refused. */
  readonly operation: number | undefined;
}

export function transaction(operations: readonly NftOperation[]): NetlinkTransaction {
  return (sequence) => {
    const writer = new MessageWriter(
      operations.reduce((sum, operation) => sum + roughBytes(operation), 1024),
    );
    const messages = operations.flatMap((operation, index) =>
      requestsOf(operation, index).map((message) => ({ message, index })),
    );
    const begin = sequence.next();
    writeMessage(writer, batchBegin(), begin, false);
    /** By sequence number, which operation a message is part of. */
    const bySequence = new Map<number, number>();
    let last = begin;
    for (const [position, { message, index }] of messages.entries()) {
      last = sequence.next();
      bySequence.set(last, index);
      // Also when something was refused before it, the last one is acknowledged, or refused itself.
      writeMessage(writer, message, last, position === messages.length - 1);
    }
    writeMessage(writer, batchEnd(), sequence.next(), false);
    const refusals: CommitRefusal[] = [];
    return {
      bytes: writer.finish(),
      exchanges: messages.length === 0 ? [] : [{ bytes: writer.length, last, begin }],
      take: (answers) => {
        for (const { type, sequence: number, payload } of answers) {
          const operation = bySequence.get(number);
          // Others answer a transaction before.
          if (type !== NLMSG_ERROR || (operation === undefined && number !== begin)) continue;
          const errno = decodeErrno(payload);
          if (errno !== 0) refusals.push({ operation, errno, name: errnoName(errno) });
        }
      },
      result: () => commitReply(refusals),
    };
  };
}

/** The message before all others of a transaction. */
export function batchBegin(generation?: number): NetlinkRequest {
  return batchMessage(NFNL_MSG_BATCH_BEGIN, generation);
}

/** The message after all others. */
export function batchEnd(): NetlinkRequest {
  return batchMessage(NFNL_MSG_BATCH_END);
}

function batchMessage(type: number, generation?: number): NetlinkRequest {
  return {
    type,
    flags: 0,
    payload: (writer) => {
      writer.raw(BATCH_HEADER);
      if (generation !== undefined) u32be.write(writer, NFNL_BATCH_GENID, generation);
    },
  };
}

export function commitReply(refusals: readonly CommitRefusal[]): CommitReply {
  if (refusals.length === 0) return { state: 'done' };
  const isOutdated = refusals.some(({ operation, errno }) => operation === undefined && errno === ERESTART);
  return isOutdated ? { state: 'outdated' } : { state: 'refused', refusals };
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
      const { chain, base, comment } = operation;
      const fields = { table, name: chain, ...base, comment };
      return [nftRequest('new chain', NLM_F_CREATE, family, CHAIN_ATTRIBUTES, fields)];
    }
    case 'deleteChain':
      return [nftRequest('delete chain', 0, family, CHAIN_ATTRIBUTES, { table, name: operation.chain })];
    case 'addRule': {
      const { chain, expressions, comment } = operation;
      const fields = { table, chain, expressions, comment };
      return [nftRequest('new rule', NLM_F_CREATE | NLM_F_APPEND, family, RULE_ATTRIBUTES, fields)];
    }
    case 'deleteRule': {
      const { chain, handle } = operation;
      return [nftRequest('delete rule', 0, family, RULE_ATTRIBUTES, { table, chain, handle })];
    }
    case 'flushChain':
      return [nftRequest('delete rule', 0, family, RULE_ATTRIBUTES, { table, chain: operation.chain })];
    case 'addSet': {
      const { set } = operation;
      const fields = { table, name: set.name, id: index + 1, ...propertiesOf(set) };
      return [nftRequest('new set', NLM_F_CREATE, family, SET_ATTRIBUTES, fields)];
    }
    case 'deleteSet':
      return [nftRequest('delete set', 0, family, SET_ATTRIBUTES, { table, name: operation.set })];
    case 'addElements':
      return Array.from(operation.elements.messages(), (encoded) =>
        elementsRequest('new elements', NLM_F_CREATE, operation, encoded),
      );
    case 'deleteElements':
      return Array.from(operation.elements.messages(), (encoded) =>
        elementsRequest('delete elements', 0, operation, encoded),
      );
  }
}

/** Enough for most, so that the buffer need not grow. */
function roughBytes(operation: NftOperation): number {
  return 'elements' in operation ? operation.elements.length + (operation.elements.length >> 8) + 256 : 512;
}
