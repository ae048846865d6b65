/** What IPVS's objects share. Numbers from linux/ip_vs.h. */
import { JunctionError } from '../errors.ts';
import type { Family, Ip } from '../model/ip.ts';
import { type MessageWriter, malformed } from './codec.ts';
import { type FamilyLookup, findFamily, genericAttributes, genericRequest } from './genetlink.ts';
import { copyIp, decodeIp } from './inet.ts';
import type { NetlinkRequest, NetlinkSocket } from './socket.ts';

const IPVS_GENL_NAME = 'IPVS';
const IPVS_GENL_VERSION = 1;
const IPVS_COMMANDS = {
  newService: 1,
  setService: 2,
  deleteService: 3,
  getService: 4,
  newDestination: 5,
  setDestination: 6,
  deleteDestination: 7,
  getDestination: 8,
  setConfig: 12,
  getConfig: 13,
  getInfo: 15,
  flush: 17,
} as const;
/** union nf_inet_addr, of which an IPv4 address takes the first four. */
const ADDRESS_BYTES = 16;

/** The number by which this kernel knows IPVS; every request needs it. */
export function findIpvs(socket: NetlinkSocket): FamilyLookup {
  return findFamily(socket, IPVS_GENL_NAME, 'ip_vs');
}

export function ipvsRequest(
  family: number,
  command: keyof typeof IPVS_COMMANDS,
  body: (writer: MessageWriter) => void,
): NetlinkRequest {
  return genericRequest(family, IPVS_COMMANDS[command], IPVS_GENL_VERSION, body);
}

/** The attributes of the one message that answers a question about IPVS itself. */
export function askIpvs(
  socket: NetlinkSocket,
  what: string,
  request: NetlinkRequest,
): ReadonlyMap<number, Uint8Array> {
  const reply = socket.request(request);
  if (reply.kind === 'refused')
    throw new JunctionError('NETLINK_FAILED', `netlink: cannot read ${what}: ${reply.name}`);
  const [message] = reply.messages;
  if (!message) throw malformed(`no answer about ${what}`);
  return genericAttributes(message.payload);
}

/** Overwritten by each address; writing an attribute copies it. */
const FIELD = new Uint8Array(ADDRESS_BYTES);

export function writeAddressField(writer: MessageWriter, type: number, ip: Ip): MessageWriter {
  FIELD.fill(0, copyIp(ip, FIELD));
  return writer.attribute(type, FIELD);
}

export function decodeAddressField(field: Uint8Array, family: Family): Ip {
  if (field.length !== ADDRESS_BYTES) throw malformed(`an address of ${field.length} bytes in IPVS`);
  return decodeIp(family === 'IPv4' ? field.subarray(0, 4) : field);
}
