/** What all of netfilter's subsystems share. Numbers from linux/netfilter/nfnetlink.h. */
import type { MessageWriter } from './codec.ts';
import type { NetlinkRequest } from './socket.ts';

export const NFNL_SUBSYS_CTNETLINK = 1;
export const NFNL_SUBSYS_IPSET = 6;
export const NFNL_SUBSYS_ACCT = 7;
export const NFNL_SUBSYS_NFTABLES = 10;

export const NFPROTO_UNSPEC = 0;

/** struct nfgenmsg: family, version 0, resource id 0. */
export const NFGENMSG_BYTES = 4;

export function nfnlType(subsystem: number, operation: number): number {
  return (subsystem << 8) | operation;
}

export function nfnlRequest(
  subsystem: number,
  operation: number,
  flags: number,
  family: number,
  attributes: (writer: MessageWriter) => void = () => undefined,
): NetlinkRequest {
  return {
    type: nfnlType(subsystem, operation),
    flags,
    payload: (writer) => attributes(writer.raw(Uint8Array.of(family, 0, 0, 0))),
  };
}
