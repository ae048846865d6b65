/** Generic netlink: families that have a name, and a number only while the machine runs. From linux/genetlink.h. */
import { constants } from 'node:os';
import { JunctionError } from '../errors.ts';
import { type MessageWriter, afterHeader, attributesByType, decodeU16, requiredAttribute } from './codec.ts';
import type { NetlinkRequest, NetlinkSocket } from './socket.ts';

const GENL_ID_CTRL = 16;
const CTRL_CMD_GETFAMILY = 3;
const CTRL_ATTR_FAMILY_ID = 1;
const CTRL_ATTR_FAMILY_NAME = 2;
/** struct genlmsghdr: command, version, reserved. */
export const GENLMSGHDR_BYTES = 4;

export type FamilyLookup =
  | { readonly state: 'present'; readonly id: number }
  | { readonly state: 'absent'; readonly reason: string };

/** The kernel loads the family's module, if it has it and may. `module` is what the reason names. */
export function findFamily(socket: NetlinkSocket, name: string, module: string): FamilyLookup {
  const reply = socket.request(getFamily(name));
  if (reply.kind === 'answered') {
    const [message] = reply.messages;
    if (!message) throw new JunctionError('NETLINK_MALFORMED', `netlink: no answer about the family ${name}`);
    return { state: 'present', id: decodeFamilyId(message.payload) };
  }
  if (reply.errno === constants.errno.ENOENT)
    return { state: 'absent', reason: `the kernel has no ${name}: load the module ${module}` };
  throw new JunctionError('NETLINK_FAILED', `netlink: cannot look up the family ${name}: ${reply.name}`);
}

export function getFamily(name: string): NetlinkRequest {
  return genericRequest(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 1, (writer) =>
    writer.string(CTRL_ATTR_FAMILY_NAME, name),
  );
}

export function decodeFamilyId(payload: Uint8Array): number {
  const attributes = genericAttributes(payload);
  return decodeU16(requiredAttribute(attributes, CTRL_ATTR_FAMILY_ID, 'the number of a family'));
}

export function genericRequest(
  family: number,
  command: number,
  version: number,
  body: (writer: MessageWriter) => void,
): NetlinkRequest {
  return {
    type: family,
    flags: 0,
    payload: (writer) => body(writer.raw(Uint8Array.of(command, version, 0, 0))),
  };
}

export function genericAttributes(payload: Uint8Array): ReadonlyMap<number, Uint8Array> {
  return attributesByType(afterHeader(payload, GENLMSGHDR_BYTES));
}
