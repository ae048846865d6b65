/** Whole tables, read from the kernel. */
import { JunctionError } from '../errors.ts';
import { type Message, NLM_F_DUMP } from './codec.ts';
import type { NetlinkRequest, NetlinkSocket } from './socket.ts';

/** A table that changes faster than it can be read is somebody's runaway program. */
export const DUMP_ATTEMPTS = 10;

export type DumpReply =
  | { readonly kind: 'answered'; readonly messages: readonly Message[] }
  | { readonly kind: 'refused'; readonly errno: number; readonly name: string };

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

/** For tables that cannot be missing. */
export function dumpMessages(
  socket: NetlinkSocket,
  what: string,
  request: NetlinkRequest,
): readonly Message[] {
  return messagesOf(dump(socket, what, request), what);
}

/** Of an answer that a caller has no other use for. `what`: `the links`. */
export function messagesOf(reply: DumpReply | undefined, what: string): readonly Message[] {
  if (reply?.kind === 'answered') return reply.messages;
  throw new JunctionError('NETLINK_FAILED', `netlink: cannot list ${what}: ${reply?.name ?? 'no answer'}`);
}
