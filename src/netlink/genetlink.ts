/** Generic netlink: families that have a name, and a number only while the machine runs. From linux/genetlink.h. */
import { constants } from 'node:os';
import { JunctionError } from '../errors.ts';
import { AttributeTable, required } from './attributes.ts';
import { type MessageWriter, malformedMessage } from './codec.ts';
import { text, u16 } from './kinds.ts';
import type { NetlinkRequest, NetlinkSocket } from './socket.ts';

const GENL_ID_CTRL = 16;
const CTRL_CMD_GETFAMILY = 3;
/** struct genlmsghdr: command, version, reserved. */
export const GENLMSGHDR_BYTES = 4;

const FAMILY = new AttributeTable('a family', { number: required(1, u16) });
const NAMED = new AttributeTable('a family', { name: required(2, text) });

export type FamilyLookup =
  | { readonly state: 'present'; readonly id: number }
  | { readonly state: 'absent'; readonly reason: string };

/** The kernel loads the family's module, if it has it and may. `module` is what the reason names. */
export function findFamily(socket: NetlinkSocket, name: string, module: string): FamilyLookup {
  const reply = socket.request(getFamily(name));
  if (reply.kind === 'answered') {
    const [message] = reply.messages;
    if (!message) throw malformedMessage(`no answer about the family ${name}`);
    return { state: 'present', id: decodeFamilyId(message.payload) };
  }
  if (reply.errno === constants.errno.ENOENT)
    return { state: 'absent', reason: `the kernel has no ${name}: load the module ${module}` };
  throw new JunctionError('NETLINK_FAILED', `netlink: cannot look up the family ${name}: ${reply.name}`);
}

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
