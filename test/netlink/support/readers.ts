/** Readers that wait in the calling thread, for tests and guests: the program itself asks through channels. */
import { constants } from 'node:os';
import { JunctionError } from '../../../src/errors.ts';
import type { Family } from '../../../src/model/ip.ts';
import { AttributeTable, required } from '../../../src/netlink/attributes.ts';
import {
  type Change,
  type ChangeOutcome,
  type NetlinkReply,
  type NetlinkRequest,
  NOTHING,
} from '../../../src/netlink/request.ts';
import {
  ATTRIBUTE_HEADER_BYTES,
  LITTLE_ENDIAN,
  malformedMessage,
  type Message,
  NLM_F_DUMP,
} from '../../../src/netlink/codec.ts';
import { decodeFamilyId, genericRequest, GENLMSGHDR_BYTES, getFamily } from '../../../src/netlink/generic.ts';
import {
  decodeEntries,
  decodeSupport,
  type IpsetEntry,
  type IpsetSupport,
  type IpsetType,
  listRequest,
  setDecoder,
  typeRequest,
} from '../../../src/netlink/ipset.ts';
import {
  decodeDestination,
  decodeService,
  getDestinations,
  getServices,
  type IpvsServiceKey,
  type IpvsTimeouts,
} from '../../../src/netlink/ipvs.ts';
import { u32 } from '../../../src/netlink/kinds.ts';
import {
  decodeAddress,
  decodeLink,
  getAddresses,
  getLink,
  getLinks,
  type Link,
  type LinkAddress,
  RTM_NEWADDR,
  RTM_NEWLINK,
} from '../../../src/netlink/rtnetlink.ts';
import type { SyncSocket } from './syncSocket.ts';

/** Outcomes in the order of the changes. */
export function applyChanges(socket: SyncSocket, changes: readonly Change[]): readonly ChangeOutcome[] {
  return socket.apply(changes);
}

/** A table may change while it is read; then it is read again. `what`: `the links`. */
function dump(socket: SyncSocket, what: string, request: NetlinkRequest): NetlinkReply {
  for (let attempt = 0; attempt < 10; attempt++) {
    const reply = socket.request({ ...request, flags: request.flags | NLM_F_DUMP });
    if (reply.kind === 'refused' || !reply.interrupted) return reply;
  }
  throw new Error(`netlink: ${what} changed during each of ten readings`);
}

export function dumpMessages(socket: SyncSocket, what: string, request: NetlinkRequest): readonly Message[] {
  const reply = dump(socket, what, request);
  if (reply.kind === 'answered') return reply.messages;
  throw new JunctionError('NETLINK_FAILED', `netlink: cannot read ${what}: ${reply.name}`);
}

export function listLinks(socket: SyncSocket): readonly Link[] {
  return dumpMessages(socket, 'the links', getLinks())
    .filter(({ type }) => type === RTM_NEWLINK)
    .map(({ payload }) => decodeLink(payload));
}

interface AddressFilter {
  readonly family?: Family;
  readonly linkIndex?: number;
}

/** Of all links, also those that are down. */
export function listAddresses(socket: SyncSocket, filter: AddressFilter = {}): readonly LinkAddress[] {
  const { family, linkIndex } = filter;
  return dumpMessages(socket, 'the addresses', getAddresses(family))
    .filter(({ type }) => type === RTM_NEWADDR)
    .flatMap(({ payload }) => decodeAddress(payload) ?? [])
    .filter((address) => linkIndex === undefined || address.linkIndex === linkIndex);
}

type Ipset = ReturnType<ReturnType<typeof setDecoder>>;

/** The messages of one set: the first has the header, and each some of the entries. */
export function decodeIpset(messages: readonly Pick<Message, 'payload'>[]): Ipset {
  const decode = setDecoder();
  const parts = messages.map(({ payload }) => decode(payload));
  const [first] = parts;
  if (!first) throw malformedMessage('a set without messages');
  return { ...first, entries: parts.flatMap(({ entries }) => entries) };
}

export function decodeEntry(type: IpsetType, data: Uint8Array): IpsetEntry {
  const member = new Uint8Array(ATTRIBUTE_HEADER_BYTES + data.length);
  new DataView(member.buffer).setUint16(0, member.length, LITTLE_ENDIAN);
  member.set(data, ATTRIBUTE_HEADER_BYTES);
  const [entry] = decodeEntries(type, member);
  if (!entry) throw new Error('no entry');
  return entry;
}

/** `undefined` where there is none of that name. */
export function readSet(socket: SyncSocket, name: string): Ipset | undefined {
  const reply = dump(socket, `the set ${name}`, listRequest(name));
  if (reply.kind === 'answered') return decodeIpset(reply.messages);
  if (reply.errno === constants.errno.ENOENT) return undefined;
  throw new JunctionError('NETLINK_FAILED', `netlink: cannot list the set ${name}: ${reply.name}`);
}

const IPVS_CMD_GET_CONFIG = 13;
const IPVS_CMD_FLUSH = 17;

const TIMEOUTS = new AttributeTable('the time-outs of IPVS', {
  tcp: required(4, u32),
  tcpFin: required(5, u32),
  udp: required(6, u32),
});

/** Of a service that is not there: none, for so the kernel answers. */
export function listDestinations(
  socket: SyncSocket,
  ipvs: number,
  service: IpvsServiceKey,
): readonly ReturnType<typeof decodeDestination>[] {
  const request = getDestinations(ipvs, service);
  return dumpMessages(socket, 'the real servers', request).map(({ payload }) => decodeDestination(payload));
}

export function readTimeouts(socket: SyncSocket, ipvs: number): IpvsTimeouts {
  return TIMEOUTS.read(askIpvs(socket, genericRequest(ipvs, IPVS_CMD_GET_CONFIG)), GENLMSGHDR_BYTES);
}

/** Every service with its destinations, whoever made them. */
export function flushIpvs(ipvs: number): Change {
  return { ...genericRequest(ipvs, IPVS_CMD_FLUSH), expected: NOTHING };
}

function askIpvs(socket: SyncSocket, request: NetlinkRequest): Uint8Array {
  const reply = socket.request(request);
  if (reply.kind === 'refused')
    throw new JunctionError('NETLINK_FAILED', `netlink: cannot ask IPVS: ${reply.name}`);
  const [message] = reply.messages;
  if (!message) throw malformedMessage('no answer about IPVS');
  return message.payload;
}

/** `undefined` where there is none of that name. */
export function readLink(socket: SyncSocket, name: string): Link | undefined {
  const reply = socket.request(getLink(name));
  if (reply.kind === 'answered') {
    const [message] = reply.messages;
    return message && decodeLink(message.payload);
  }
  if (reply.errno === constants.errno.ENODEV) return undefined;
  throw new JunctionError('NETLINK_FAILED', `netlink: cannot read the link ${name}: ${reply.name}`);
}

type FamilyLookup =
  | { readonly state: 'present'; readonly id: number }
  | { readonly state: 'absent'; readonly reason: string };

/** The kernel loads the family's module, if it has it and may. `module` is what the reason names. */
export function findFamily(socket: SyncSocket, name: string, module: string): FamilyLookup {
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

/** The number by which this kernel knows IPVS; every request needs it. */
export function findIpvsFamily(socket: SyncSocket): FamilyLookup {
  return findFamily(socket, 'IPVS', 'ip_vs');
}

/** Those for firewall marks, which have no address and are not ours, are left out. */
export function listServices(
  socket: SyncSocket,
  ipvs: number,
): readonly NonNullable<ReturnType<typeof decodeService>>[] {
  const messages = dumpMessages(socket, 'the virtual servers', getServices(ipvs));
  return messages.flatMap(({ payload }) => decodeService(payload) ?? []);
}

/** The kernel loads the type's module if it can. */
export function probeSetType(socket: SyncSocket, type: IpsetType, family: Family): IpsetSupport {
  return decodeSupport(type, socket.request(typeRequest(type, family)));
}

export function applyChange(socket: SyncSocket, change: Change): ChangeOutcome {
  return applyChanges(socket, [change])[0] ?? { state: 'absent' };
}
