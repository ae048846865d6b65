/** One protocol's way to the kernel, whatever thread its socket lives in. */
import { type Change, type ChangeOutcome, applyChanges } from './batch.ts';
import { type CommitOutcome, type Transaction, commit } from './commit.ts';
import { type DumpReply, dump } from './dump.ts';
import type { NetlinkReply, NetlinkRequest, NetlinkSocket } from './socket.ts';

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
  commit(transaction: Transaction): Promise<CommitOutcome>;
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
