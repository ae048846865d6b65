/**
 * The headers that families share: those of netfilter's subsystems, and of generic netlink, whose families have a name, and a
 * number only while the machine runs. Numbers from linux/netfilter/nfnetlink.h and linux/genetlink.h.
 */
import { AttributeTable, required } from './attributes.ts';
import type { NetlinkRequest } from './request.ts';
import type { MessageWriter } from './codec.ts';
import { text, u16 } from './kinds.ts';

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

const GENL_ID_CTRL = 16;
const CTRL_CMD_GETFAMILY = 3;
/** struct genlmsghdr: command, version, reserved. */
export const GENLMSGHDR_BYTES = 4;

const FAMILY = new AttributeTable('a family', { number: required(1, u16) });
const NAMED = new AttributeTable('a family', { name: required(2, text) });

export function getFamily(name: string): NetlinkRequest {
  return genericRequest(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, (writer) => NAMED.write(writer, { name }));
}

export function decodeFamilyId(payload: Uint8Array): number {
  return FAMILY.read(payload, GENLMSGHDR_BYTES).number;
}

export function genericRequest(
  family: number,
  command: number,
  attributes: (writer: MessageWriter) => void = () => undefined,
): NetlinkRequest {
  return {
    type: family,
    flags: 0,
    // Version 1, of the control family and of IPVS.
    payload: (writer) => attributes(writer.raw(Uint8Array.of(command, 1, 0, 0))),
  };
}
