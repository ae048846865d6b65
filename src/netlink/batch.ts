/**
 * Changes to the kernel as data: a request, and what its refusals mean. Many go out in one datagram; the kernel works
 * through them in order, and one that fails stops none of the others.
 */
import { constants } from 'node:os';
import { errnoName } from '../system/libc.ts';
import { type Message, MessageWriter, NLMSG_ERROR, NLM_F_ACK, NLM_F_REQUEST, decodeErrno } from './codec.ts';
import type { NetlinkRequest, NetlinkSocket } from './socket.ts';

export interface Change extends NetlinkRequest {
  /** Errors by which the kernel says that there is nothing to change. */
  readonly expected: ReadonlyMap<number, 'exists' | 'absent'>;
  /** For families that have errors of their own. */
  readonly nameOf?: (errno: number) => string;
}

export type ChangeOutcome =
  | { readonly state: 'done' }
  /** It is there already. */
  | { readonly state: 'exists' }
  /** It, or what it would be part of, is not there. */
  | { readonly state: 'absent' }
  | { readonly state: 'refused'; readonly errno: number; readonly name: string };

/**
 * When every single change is refused, all the refusals wait in the receive buffer, at about a kilobyte each. So many
 * fit into one of the usual size, which is what a socket without the rights to a larger one has.
 */
const MESSAGES_PER_DATAGRAM = 128;
/** Well under the usual send buffer, of which the kernel counts its own overhead too. */
const BYTES_PER_DATAGRAM = 1 << 16;

const DONE = { state: 'done' } as const;

export function applyChange(socket: NetlinkSocket, change: Change): ChangeOutcome {
  const reply = socket.request(change);
  return reply.kind === 'answered' ? DONE : outcomeOf(change, reply.errno);
}

/** Outcomes in the order of the changes. */
export function applyChanges(socket: NetlinkSocket, changes: readonly Change[]): readonly ChangeOutcome[] {
  const outcomes: ChangeOutcome[] = [];
  while (outcomes.length < changes.length) {
    const writer = new MessageWriter(BYTES_PER_DATAGRAM + 4096);
    const batch = writeBatch(writer, changes, outcomes.length, () => socket.takeSequence());
    socket.send(writer.finish());
    const refusals = new Map<number, number>();
    for (const messages of socket.answers(batch.last)) noteRefusals(refusals, messages);
    for (const outcome of outcomesOf(batch, refusals)) outcomes.push(outcome);
  }
  return outcomes;
}

/** What goes out in one datagram. */
export interface Batch {
  /** By sequence number. */
  readonly changes: ReadonlyMap<number, Change>;
  /** The sequence number of the one that is acknowledged, by which all are done or refused. */
  readonly last: number;
}

/** As many of the changes, from the one at `start` on, as fit into one datagram. */
export function writeBatch(
  writer: MessageWriter,
  changes: readonly Change[],
  start: number,
  takeSequence: () => number,
): Batch {
  const bySequence = new Map<number, Change>();
  const startLength = writer.length;
  let last = 0;
  for (let index = start; index < changes.length; index++) {
    const change = changes[index];
    if (!change) break;
    const isLast =
      index === changes.length - 1 ||
      bySequence.size === MESSAGES_PER_DATAGRAM - 1 ||
      writer.length - startLength >= BYTES_PER_DATAGRAM;
    last = takeSequence();
    bySequence.set(last, change);
    // Refusals come unasked. That the last one is acknowledged means that all before it are done or refused.
    const flags = change.flags | NLM_F_REQUEST | (isLast ? NLM_F_ACK : 0);
    writer.message({ type: change.type, flags, sequence: last }, change.payload);
    if (isLast) break;
  }
  return { changes: bySequence, last };
}

/** Adds error numbers by sequence number, also of messages that answers to other requests bring. */
export function noteRefusals(errors: Map<number, number>, messages: readonly Message[]): void {
  for (const { type, sequence, payload } of messages)
    if (type === NLMSG_ERROR) errors.set(sequence, decodeErrno(payload));
}

export function outcomesOf({ changes }: Batch, errors: ReadonlyMap<number, number>): ChangeOutcome[] {
  const outcomes: ChangeOutcome[] = [];
  for (const [sequence, change] of changes) outcomes.push(outcomeOf(change, errors.get(sequence) ?? 0));
  return outcomes;
}

function outcomeOf({ expected, nameOf = errnoName }: Change, errno: number): ChangeOutcome {
  if (errno === 0) return DONE;
  const state = expected.get(errno);
  return state ? { state } : { state: 'refused', errno, name: nameOf(errno) };
}

export const EXISTS: ReadonlyMap<number, 'exists'> = new Map([[constants.errno.EEXIST, 'exists']]);
export const NOTHING: ReadonlyMap<number, never> = new Map<number, never>();

/** What a generation is refused with that is over. Node has no name for it. */
const ERESTART = 85;

/** Messages that the kernel takes all together or not at all. */
export interface NetlinkTransaction {
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

export type CommitReply =
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

export function commit(socket: NetlinkSocket, transaction: NetlinkTransaction): CommitReply {
  const writer = new MessageWriter(transaction.bytes);
  const written = transaction.write(writer, () => socket.takeSequence());
  if (!written) return DONE;
  socket.send(writer.finish());
  const refusals: CommitRefusal[] = [];
  for (const messages of socket.answers(written.last, written.begin))
    noteCommitRefusals(refusals, written, messages);
  return commitReply(refusals);
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

export function commitReply(refusals: readonly CommitRefusal[]): CommitReply {
  if (refusals.length === 0) return DONE;
  const isOutdated = refusals.some(({ operation, errno }) => operation === undefined && errno === ERESTART);
  return isOutdated ? { state: 'outdated' } : { state: 'refused', refusals };
}
