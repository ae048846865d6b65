/** What all of netfilter's subsystems share. Numbers from linux/netfilter/nfnetlink.h. */

export const NFNL_SUBSYS_IPSET = 6;
export const NFNL_SUBSYS_CTNETLINK = 1;
export const NFNL_SUBSYS_ACCT = 7;
export const NFNL_SUBSYS_NFTABLES = 10;

export const NFPROTO_UNSPEC = 0;
export const NFPROTO_IPV4 = 2;
export const NFPROTO_IPV6 = 10;

/** struct nfgenmsg: family, version 0, resource id 0. */
export function nfgenmsg(family: number): Uint8Array {
  return Uint8Array.of(family, 0, 0, 0);
}
export const NFGENMSG_BYTES = 4;

export function nfnlType(subsystem: number, operation: number): number {
  return (subsystem << 8) | operation;
}
