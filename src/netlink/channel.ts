/** One protocol's way to the kernel, whatever thread its socket lives in. */
import { JunctionError } from '../errors.ts';
import {
  type Change,
  type ChangeOutcome,
  type CommitReply,
  type NetlinkTransaction,
  applyChanges,
  commit,
} from './batch.ts';
import { type Message, NLM_F_DUMP } from './codec.ts';
import type { NetlinkRefusal, NetlinkReply, NetlinkRequest, NetlinkSocket } from './socket.ts';

export interface NetlinkChannel {
  /** Outcomes in the order of the changes; one that is refused stops none of the others. */
  apply(changes: readonly Change[]): Promise<readonly ChangeOutcome[]>;
  request(request: NetlinkRequest): Promise<NetlinkReply>;
  /** Whole tables, one answer per request; one that changed while it was read is read again. */
  dumpAll(requests: readonly NetlinkRequest[]): Promise<readonly DumpReply[]>;
}

/** For the families that have transactions. */
export interface TransactionChannel extends NetlinkChannel {
  /** All of it or nothing, in one datagram. One that is larger than the kernel takes fails with EMSGSIZE. */
  commit(transaction: NetlinkTransaction): Promise<CommitReply>;
}

/** In the calling thread, which waits meanwhile: for tests and small tools. */
export function directChannel(socket: NetlinkSocket): TransactionChannel {
  return {
    apply: async (changes) => applyChanges(socket, changes),
    commit: async (transaction) => commit(socket, transaction),
    request: async (request) => socket.request(request),
    dumpAll: async (requests) => requests.map((request) => dump(socket, 'the table', request)),
  };
}

/** A table that changes faster than it can be read is somebody's runaway program. */
export const DUMP_ATTEMPTS = 10;

export type DumpReply = { readonly kind: 'answered'; readonly messages: readonly Message[] } | NetlinkRefusal;

/** Reads again when the table changed meanwhile, because entries may then be missing. `what`: `the links`. */
export function dump(socket: NetlinkSocket, what: string, request: NetlinkRequest): DumpReply {
  for (let attempt = 0; attempt < DUMP_ATTEMPTS; attempt++) {
    const reply = socket.request({ ...request, flags: request.flags | NLM_F_DUMP });
    if (reply.kind === 'refused' || !reply.interrupted) return reply;
  }
  throw changedTooOften(what);
}

export function changedTooOften(what: string): JunctionError {
  return new JunctionError(
    'NETLINK_FAILED',
    `netlink: ${what} changed during each of ${DUMP_ATTEMPTS} readings`,
  );
}

/** Of an answer that a caller has no other use for. `what`: `the links`. */
export function messagesOf(reply: DumpReply | undefined, what: string): readonly Message[] {
  if (reply?.kind === 'answered') return reply.messages;
  throw new JunctionError('NETLINK_FAILED', `netlink: cannot list ${what}: ${reply?.name ?? 'no answer'}`);
}
