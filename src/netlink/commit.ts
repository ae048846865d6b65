/** Transactions: messages that the kernel takes all together or not at all. */
import { errnoName } from '../system/libc.ts';
import { type Message, MessageWriter, NLMSG_ERROR, decodeErrno } from './codec.ts';
import type { NetlinkSocket } from './socket.ts';

/** What a generation is refused with that is over. Node has no name for it. */
const ERESTART = 85;

export interface Transaction {
  /** About how many it will be. */
  readonly bytes: number;
  /** `undefined` when there is nothing to do. */
  readonly write: (writer: MessageWriter, takeSequence: () => number) => WrittenTransaction | undefined;
}

export interface WrittenTransaction {
  /** The sequence number of the message that begins it. When it is refused as a whole, that one is, and no other. */
  readonly begin: number;
  /** The sequence number of the last one, which is acknowledged. */
  readonly last: number;
  /** By sequence number, which operation a message is part of. */
  readonly operations: ReadonlyMap<number, number>;
}

export type CommitOutcome =
  | { readonly state: 'done' }
  /** Nothing was done: the kernel is at another generation than the transaction was made for. */
  | { readonly state: 'outdated' }
  /** Nothing was done. */
  | { readonly state: 'refused'; readonly refusals: readonly CommitRefusal[] };

export interface CommitRefusal {
  /** Its place in the transaction; `undefined` when it is the whole that was refused. */
  readonly operation: number | undefined;
  readonly errno: number;
  readonly name: string;
}

const DONE: CommitOutcome = { state: 'done' };

export function commit(socket: NetlinkSocket, transaction: Transaction): CommitOutcome {
  const writer = new MessageWriter(transaction.bytes);
  const written = transaction.write(writer, () => socket.takeSequence());
  if (!written) return DONE;
  socket.send(writer.finish());
  const refusals: CommitRefusal[] = [];
  for (const messages of socket.answers(written.last, written.begin))
    noteCommitRefusals(refusals, written, messages);
  return commitOutcome(refusals);
}

/** Adds what the messages say against the transaction. Others answer one before. */
export function noteCommitRefusals(
  refusals: CommitRefusal[],
  { begin, operations }: WrittenTransaction,
  messages: readonly Message[],
): void {
  for (const { type, sequence, payload } of messages) {
    const operation = operations.get(sequence);
    if (type !== NLMSG_ERROR || (operation === undefined && sequence !== begin)) continue;
    const errno = decodeErrno(payload);
    if (errno !== 0) refusals.push({ operation, errno, name: errnoName(errno) });
  }
}

export function commitOutcome(refusals: readonly CommitRefusal[]): CommitOutcome {
  if (refusals.length === 0) return DONE;
  const isOutdated = refusals.some(({ operation, errno }) => operation === undefined && errno === ERESTART);
  return isOutdated ? { state: 'outdated' } : { state: 'refused', refusals };
}
