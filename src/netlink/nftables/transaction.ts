/**
 * Changes that the kernel makes all together or not at all, as data. They go out as one datagram between a message that
 * begins them and one that ends them. Numbers from linux/netfilter/nfnetlink.h.
 */
import type { NetlinkTransaction, WrittenTransaction } from '../batch.ts';
import { type MessageWriter, NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST } from '../codec.ts';
import { NFNL_SUBSYS_NFTABLES, NFPROTO_UNSPEC } from '../nfnetlink.ts';
import type { NetlinkRequest } from '../socket.ts';
import type { ElementList } from './elementList.ts';
import { type SetPlace, elementRequests, elementsRequest } from './elements.ts';
import type { Expression } from './expressions.ts';
import { type TablePlace, nftRequest } from './message.ts';
import {
  type BaseChain,
  type ChainPlace,
  HOOKS,
  NFT_TABLE_F_OWNER,
  POLICIES,
  SET_ATTRIBUTES,
  SET_NAME,
  chainRequest,
  ruleRequest,
  tableRequest,
} from './objects.ts';
import { type SetSpec, propertiesOf } from './setSpec.ts';

const NFNL_MSG_BATCH_BEGIN = 0x10;
const NFNL_MSG_BATCH_END = 0x11;
const NFNL_BATCH_GENID = 1;
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
    } & TablePlace)
  /** With all that is in it. */
  | ({ readonly kind: 'deleteTable' } & TablePlace)
  /** One that is there already stays, with its rules. */
  | ({ readonly kind: 'addChain'; readonly base?: BaseChain; readonly comment?: string } & ChainPlace)
  /** Refused with EBUSY while a rule or a map leads to it. Its rules are deleted with it. */
  | ({ readonly kind: 'deleteChain' } & ChainPlace)
  /** All its rules; the chain stays. */
  | ({ readonly kind: 'flushChain' } & ChainPlace)
  /** At the end of its chain, or right behind another rule, by its handle. */
  | ({
      readonly kind: 'addRule';
      readonly expressions: readonly Expression[];
      readonly comment?: string;
      readonly after?: bigint;
    } & ChainPlace)
  | ({ readonly kind: 'deleteRule'; readonly handle: bigint } & ChainPlace)
  /** One that is there already stays. */
  | ({ readonly kind: 'addSet'; readonly set: SetSpec } & TablePlace)
  /** Refused with EBUSY while a rule looks into it. */
  | ({ readonly kind: 'deleteSet' } & SetPlace)
  /** All elements; the set stays. */
  | ({ readonly kind: 'flushSet' } & SetPlace)
  | ({
      /** An element that is there already stays as it is; one that has other data is EEXIST. */
      readonly kind: 'addElements';
      readonly elements: ElementList;
      /** EEXIST for any that is there already. */
      readonly isExclusive?: true;
    } & SetPlace)
  /** Refused with ENOENT when one of them is not there. Only keys are looked at, and whether they end an interval. */
  | ({ readonly kind: 'deleteElements'; readonly elements: ElementList } & SetPlace);

interface TransactionOptions {
  /** Nothing is done when the kernel is at another one: another program made changes since it was read. */
  readonly generation?: number;
}

export function transaction(
  operations: readonly NftOperation[],
  { generation }: TransactionOptions = {},
): NetlinkTransaction {
  return {
    bytes: operations.reduce((total, operation) => total + roughBytes(operation), 1024),
    write: (writer, takeSequence) => writeTransaction(writer, operations, generation, takeSequence),
  };
}

function writeTransaction(
  writer: MessageWriter,
  operations: readonly NftOperation[],
  generation: number | undefined,
  takeSequence: () => number,
): WrittenTransaction | undefined {
  const messages = operations.flatMap((operation, index) =>
    requestsOf(operation, index).map((message) => ({ message, index })),
  );
  if (messages.length === 0) return undefined;
  const begin = takeSequence();
  writer.message({ type: NFNL_MSG_BATCH_BEGIN, flags: NLM_F_REQUEST, sequence: begin }, (body) => {
    body.raw(BATCH_HEADER);
    if (generation !== undefined) body.u32be(NFNL_BATCH_GENID, generation);
  });
  const bySequence = new Map<number, number>();
  let last = begin;
  for (const [position, { message, index }] of messages.entries()) {
    last = takeSequence();
    bySequence.set(last, index);
    // Also when something was refused before it, the last one is acknowledged, or refused itself.
    const flags = message.flags | NLM_F_REQUEST | (position === messages.length - 1 ? NLM_F_ACK : 0);
    writer.message({ type: message.type, flags, sequence: last }, message.payload);
  }
  writer.message({ type: NFNL_MSG_BATCH_END, flags: NLM_F_REQUEST, sequence: takeSequence() }, (body) =>
    body.raw(BATCH_HEADER),
  );
  return { begin, last, operations: bySequence };
}

/** `index` is its place in the transaction. Elements may take several messages. */
export function requestsOf(operation: NftOperation, index: number): readonly NetlinkRequest[] {
  switch (operation.kind) {
    case 'addTable': {
      const { comment, isOwned } = operation;
      const flags = isOwned ? NFT_TABLE_F_OWNER : 0;
      return [tableRequest('new table', NLM_F_CREATE, operation, { flags, comment })];
    }
    case 'deleteTable':
      return [tableRequest('delete table', 0, operation)];
    case 'addChain': {
      const { base, comment } = operation;
      const hook = base && {
        ...base,
        hook: HOOKS.number(base.hook),
        policy: POLICIES.number(base.policy),
      };
      return [chainRequest('new chain', NLM_F_CREATE, operation, { ...hook, comment })];
    }
    case 'deleteChain':
      return [chainRequest('delete chain', 0, operation)];
    case 'addRule': {
      const { expressions, after, comment } = operation;
      const flags = NLM_F_CREATE | NLM_F_APPEND;
      return [ruleRequest('new rule', flags, operation, { expressions, after, comment })];
    }
    case 'deleteRule':
      return [ruleRequest('delete rule', 0, operation, { handle: operation.handle })];
    case 'flushChain':
      return [ruleRequest('delete rule', 0, operation)];
    case 'addSet': {
      const { family, table, set } = operation;
      const fields = { table, name: set.name, id: index + 1, ...propertiesOf(set) };
      return [nftRequest('new set', NLM_F_CREATE, family, SET_ATTRIBUTES, fields)];
    }
    case 'deleteSet': {
      const { family, table, set } = operation;
      return [nftRequest('delete set', 0, family, SET_NAME, { table, name: set })];
    }
    case 'flushSet':
      return [elementsRequest('delete elements', 0, operation)];
    case 'addElements': {
      const flags = NLM_F_CREATE | (operation.isExclusive ? NLM_F_EXCL : 0);
      return elementRequests('new elements', flags, operation, operation.elements);
    }
    case 'deleteElements':
      return elementRequests('delete elements', 0, operation, operation.elements);
  }
}

/** Enough for most, so that the buffer need not grow. */
function roughBytes(operation: NftOperation): number {
  return 'elements' in operation ? operation.elements.length + (operation.elements.length >> 8) + 256 : 512;
}
