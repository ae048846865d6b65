/**
 * Netfilter accounting objects: named counters for `-m nfacct` rules. A kernel without them is an outcome, not an error. Numbers from linux/netfilter/nfnetlink_acct.h.
 */
import { constants } from 'node:os';
import { AttributeTable, type ValueOf, withDefault } from './attributes.ts';
import { NLM_F_CREATE, NLM_F_EXCL } from './codec.ts';
import { text, u64be } from './kinds.ts';
import { NFGENMSG_BYTES, NFNL_SUBSYS_ACCT, nfnlRequest, NFPROTO_UNSPEC } from './generic.ts';
import { NETLINK_NETFILTER } from './socket.ts';
import { type NetlinkRequest, payloadsNow, requestOnce } from './request.ts';

const NFNL_MSG_ACCT_NEW = 0;
const NFNL_MSG_ACCT_GET = 1;
const NFNL_MSG_ACCT_DEL = 3;
const NAME_MAX_BYTES = 31;

const COUNTER = new AttributeTable('a counter', {
  name: withDefault(1, text, ''),
  packets: withDefault(2, u64be, 0n),
  bytes: withDefault(3, u64be, 0n),
});

type NfacctOutcome =
  | { readonly state: 'created' }
  | { readonly state: 'exists' }
  | { readonly state: 'unavailable'; readonly reason: string };

/** Makes the counter; one that exists keeps its count. */
export function ensureNfacct(name: string): NfacctOutcome {
  if (Buffer.byteLength(name) > NAME_MAX_BYTES) {
    return { state: 'unavailable', reason: `the name ${name} is longer than ${NAME_MAX_BYTES} bytes` };
  }
  const reply = requestOnce(NETLINK_NETFILTER, newNfacct(name));
  if (typeof reply === 'string') return { state: 'unavailable', reason: reply };
  if (reply.kind === 'answered') return { state: 'created' };
  if (reply.errno === constants.errno.EEXIST || reply.errno === constants.errno.EBUSY)
    return { state: 'exists' };
  return { state: 'unavailable', reason: `the kernel answers ${reply.name} (is nfnetlink_acct loaded?)` };
}

export function readNfacct(name: string): ValueOf<typeof COUNTER> | undefined {
  const [payload] = payloadsNow(NETLINK_NETFILTER, getNfacct(name));
  return payload && decodeNfacct(payload);
}

/** Returns whether it was deleted; one that a rule uses stays. */
export function deleteNfacct(name: string): boolean {
  const reply = requestOnce(NETLINK_NETFILTER, counterRequest(NFNL_MSG_ACCT_DEL, 0, name));
  return typeof reply !== 'string' && reply.kind === 'answered';
}

export function newNfacct(name: string): NetlinkRequest {
  return counterRequest(NFNL_MSG_ACCT_NEW, NLM_F_CREATE | NLM_F_EXCL, name);
}

export function getNfacct(name: string): NetlinkRequest {
  return counterRequest(NFNL_MSG_ACCT_GET, 0, name);
}

export function decodeNfacct(payload: Uint8Array): ValueOf<typeof COUNTER> {
  return COUNTER.read(payload, NFGENMSG_BYTES);
}

function counterRequest(operation: number, flags: number, name: string): NetlinkRequest {
  return nfnlRequest(NFNL_SUBSYS_ACCT, operation, flags, NFPROTO_UNSPEC, (writer) =>
    COUNTER.write(writer, { name }),
  );
}
