/** Generic netlink: families that have a name, and a number only while the machine runs. From linux/genetlink.h. */
import { AttributeTable, required } from './attributes.ts';
import type { MessageWriter } from './codec.ts';
import { text, u16 } from './kinds.ts';
import type { NetlinkRequest } from './socket.ts';

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
