/**
 * Changes to the kernel as data: a request, and what its refusals mean. Many go out in one datagram; the kernel works
 * through them in order, and one that fails stops none of the others.
 */
import { constants } from 'node:os';
import { errnoName } from '../libc.ts';
import { MessageWriter, NLMSG_ERROR, NLM_F_ACK, NLM_F_REQUEST, decodeErrno } from './codec.ts';
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

const DONE: ChangeOutcome = { state: 'done' };

export function applyChange(socket: NetlinkSocket, change: Change): ChangeOutcome {
  const reply = socket.request(change);
  return reply.kind === 'answered' ? DONE : outcomeOf(change, reply.errno);
}

/** Outcomes in the order of the changes. */
export function applyChanges(socket: NetlinkSocket, changes: readonly Change[]): readonly ChangeOutcome[] {
  const outcomes: ChangeOutcome[] = [];
  while (outcomes.length < changes.length) applyDatagram(socket, changes, outcomes);
  return outcomes;
}

/** Sends the changes whose outcome is not known yet, as many as fit. */
function applyDatagram(socket: NetlinkSocket, changes: readonly Change[], outcomes: ChangeOutcome[]): void {
  const writer = new MessageWriter(BYTES_PER_DATAGRAM + 4096);
  const bySequence = new Map<number, Change>();
  const start = outcomes.length;
  let last = 0;
  for (let index = start; index < changes.length; index++) {
    const change = changes[index];
    if (!change) break;
    const isLast =
      index === changes.length - 1 ||
      bySequence.size === MESSAGES_PER_DATAGRAM - 1 ||
      writer.length >= BYTES_PER_DATAGRAM;
    last = socket.takeSequence();
    bySequence.set(last, change);
    // Refusals come unasked. That the last one is acknowledged means that all before it are done or refused.
    const flags = change.flags | NLM_F_REQUEST | (isLast ? NLM_F_ACK : 0);
    writer.message({ type: change.type, flags, sequence: last }, change.payload);
    if (isLast) break;
  }
  socket.send(writer.finish());
  const errors = refusals(socket, bySequence, last);
  for (const [sequence, change] of bySequence) outcomes.push(outcomeOf(change, errors.get(sequence) ?? 0));
}

/** Errors by sequence number. */
function refusals(
  socket: NetlinkSocket,
  ours: ReadonlyMap<number, Change>,
  last: number,
): ReadonlyMap<number, number> {
  const errors = new Map<number, number>();
  for (;;) {
    for (const { type, sequence, payload } of socket.receive()) {
      if (type !== NLMSG_ERROR || !ours.has(sequence)) continue;
      errors.set(sequence, decodeErrno(payload));
      if (sequence === last) return errors;
    }
  }
}

function outcomeOf({ expected, nameOf = errnoName }: Change, errno: number): ChangeOutcome {
  if (errno === 0) return DONE;
  const state = expected.get(errno);
  return state ? { state } : { state: 'refused', errno, name: nameOf(errno) };
}

export const EXISTS: ReadonlyMap<number, 'exists'> = new Map([[constants.errno.EEXIST, 'exists']]);
export const NOTHING: ReadonlyMap<number, never> = new Map<number, never>();
