/**
 * Netfilter accounting objects: named counters that `-m nfacct` rules count into. They are a nicety, so a kernel
 * without them is an answer here, not an error. Numbers from linux/netfilter/nfnetlink_acct.h.
 */
import { constants } from 'node:os';
import { isJunctionError } from '../errors.ts';
import { NLM_F_CREATE, NLM_F_EXCL, decodeAttributes, decodeString, decodeU64be } from './codec.ts';
import { NFGENMSG_BYTES, NFNL_SUBSYS_ACCT, NFPROTO_UNSPEC, nfgenmsg, nfnlType } from './nfnetlink.ts';
import { NETLINK_NETFILTER, type NetlinkReply, type NetlinkRequest, NetlinkSocket } from './socket.ts';

const NFNL_MSG_ACCT_NEW = 0;
const NFNL_MSG_ACCT_GET = 1;
const NFNL_MSG_ACCT_DEL = 3;
const NFACCT_NAME = 1;
const NFACCT_PKTS = 2;
const NFACCT_BYTES = 3;
const NAME_MAX_BYTES = 31;

export type NfacctOutcome =
  | { readonly state: 'created' }
  | { readonly state: 'exists' }
  | { readonly state: 'unavailable'; readonly reason: string };

export interface NfacctCounter {
  readonly name: string;
  readonly packets: bigint;
  readonly bytes: bigint;
}

/** Makes the counter unless it is there; one that is there keeps its count. */
export function ensureNfacct(name: string): NfacctOutcome {
  if (Buffer.byteLength(name) > NAME_MAX_BYTES) {
    return { state: 'unavailable', reason: `the name ${name} is longer than ${NAME_MAX_BYTES} bytes` };
  }
  const reply = ask(newNfacct(name));
  if (typeof reply === 'string') return { state: 'unavailable', reason: reply };
  if (reply.kind === 'answered') return { state: 'created' };
  if (reply.errno === constants.errno.EEXIST || reply.errno === constants.errno.EBUSY)
    return { state: 'exists' };
  return { state: 'unavailable', reason: `the kernel answers ${reply.name} (is nfnetlink_acct loaded?)` };
}

export function readNfacct(name: string): NfacctCounter | undefined {
  const reply = ask(getNfacct(name));
  if (typeof reply === 'string' || reply.kind === 'refused') return undefined;
  const [message] = reply.messages;
  return message && decodeNfacct(message.payload);
}

/** Answers whether it was there and is gone; one that a rule still counts into stays. */
export function deleteNfacct(name: string): boolean {
  const reply = ask({
    type: nfnlType(NFNL_SUBSYS_ACCT, NFNL_MSG_ACCT_DEL),
    flags: 0,
    payload: (writer) => writer.raw(nfgenmsg(NFPROTO_UNSPEC)).string(NFACCT_NAME, name),
  });
  return typeof reply !== 'string' && reply.kind === 'answered';
}

export function newNfacct(name: string): NetlinkRequest {
  return {
    type: nfnlType(NFNL_SUBSYS_ACCT, NFNL_MSG_ACCT_NEW),
    flags: NLM_F_CREATE | NLM_F_EXCL,
    payload: (writer) => writer.raw(nfgenmsg(NFPROTO_UNSPEC)).string(NFACCT_NAME, name),
  };
}

export function getNfacct(name: string): NetlinkRequest {
  return {
    type: nfnlType(NFNL_SUBSYS_ACCT, NFNL_MSG_ACCT_GET),
    flags: 0,
    payload: (writer) => writer.raw(nfgenmsg(NFPROTO_UNSPEC)).string(NFACCT_NAME, name),
  };
}

export function decodeNfacct(payload: Uint8Array): NfacctCounter {
  const values = new Map(
    decodeAttributes(payload.subarray(NFGENMSG_BYTES)).map(({ type, value }) => [type, value] as const),
  );
  const number = (type: number): bigint => {
    const value = values.get(type);
    return value ? decodeU64be(value) : 0n;
  };
  const name = decodeString(values.get(NFACCT_NAME) ?? new Uint8Array());
  return { name, packets: number(NFACCT_PKTS), bytes: number(NFACCT_BYTES) };
}

/** The reply, or why there is none. */
function ask(request: NetlinkRequest): NetlinkReply | string {
  let socket: NetlinkSocket | undefined;
  try {
    socket = NetlinkSocket.open(NETLINK_NETFILTER);
    return socket.request(request);
  } catch (error) {
    if (isJunctionError(error)) return error.message;
    throw error;
  } finally {
    socket?.close();
  }
}
