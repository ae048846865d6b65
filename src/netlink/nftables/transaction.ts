/**
 * Changes that the kernel makes all at once or not at all, as data. They go out as one datagram between a message that
 * begins them and one that ends them. Numbers from linux/netfilter/nfnetlink.h.
 */
import type { MessageWriter } from '../codec.ts';
import { NLM_F_ACK, NLM_F_REQUEST } from '../codec.ts';
import type { Transaction, WrittenTransaction } from '../commit.ts';
import { NFNL_SUBSYS_NFTABLES, NFPROTO_UNSPEC } from '../nfnetlink.ts';
import { type DeleteChain, type NewChain, deleteChain, newChain } from './chain.ts';
import {
  type DeleteElements,
  type FlushSet,
  type NewElements,
  deleteElements,
  flushSet,
  newElements,
} from './elements.ts';
import type { NftMessage } from './message.ts';
import { type DeleteRule, type FlushChain, type NewRule, deleteRule, flushChain, newRule } from './rule.ts';
import { type DeleteSet, type NewSet, deleteSet, newSet } from './set.ts';
import { type DeleteTable, type NewTable, deleteTable, newTable } from './table.ts';

const NFNL_MSG_BATCH_BEGIN = 0x10;
const NFNL_MSG_BATCH_END = 0x11;
const NFNL_BATCH_GENID = 1;
/** struct nfgenmsg, whose last two bytes name the subsystem here, big endian. */
const BATCH_HEADER = Uint8Array.of(NFPROTO_UNSPEC, 0, 0, NFNL_SUBSYS_NFTABLES);

export type NftOperation =
  | NewTable
  | DeleteTable
  | NewChain
  | DeleteChain
  | NewRule
  | DeleteRule
  | FlushChain
  | NewSet
  | DeleteSet
  | NewElements
  | DeleteElements
  | FlushSet;

export interface TransactionOptions {
  /** Nothing is done when the kernel is at another one: somebody else made changes since it was read. */
  readonly generation?: number;
}

export function transaction(
  operations: readonly NftOperation[],
  { generation }: TransactionOptions = {},
): Transaction {
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
    messagesOf(operation, index).map((message) => ({ message, index })),
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

function messagesOf(operation: NftOperation, index: number): readonly NftMessage[] {
  switch (operation.kind) {
    case 'new table':
      return [newTable(operation)];
    case 'delete table':
      return [deleteTable(operation)];
    case 'new chain':
      return [newChain(operation)];
    case 'delete chain':
      return [deleteChain(operation)];
    case 'new rule':
      return [newRule(operation)];
    case 'delete rule':
      return [deleteRule(operation)];
    case 'flush chain':
      return [flushChain(operation)];
    case 'new set':
      return [newSet(operation, index + 1)];
    case 'delete set':
      return [deleteSet(operation)];
    case 'new elements':
      return newElements(operation);
    case 'delete elements':
      return deleteElements(operation);
    case 'flush set':
      return [flushSet(operation)];
  }
}

/** Enough for most, so that the buffer need not grow. */
function roughBytes(operation: NftOperation): number {
  return 'elements' in operation ? operation.elements.length + (operation.elements.length >> 8) + 256 : 512;
}
