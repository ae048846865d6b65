/** Virtual servers of IPVS. */
import { constants } from 'node:os';
import { type Family, type Ip, familyOf } from '../model/ip.ts';
import type { Protocol } from '../model/objects.ts';
import { type Change, EXISTS } from './batch.ts';
import {
  type MessageWriter,
  attributesByType,
  decodeString,
  decodeU16,
  decodeU16be,
  decodeU32,
  decodeU32be,
  malformed,
  requiredAttribute,
} from './codec.ts';
import { dumpMessages } from './dump.ts';
import { genericAttributes } from './genetlink.ts';
import { addressFamily, familyOfNumber, protocolNumber, protocolOfNumber } from './inet.ts';
import { decodeAddressField, ipvsRequest, writeAddressField } from './ipvs.ts';
import type { NetlinkRequest, NetlinkSocket } from './socket.ts';

const IPVS_CMD_ATTR_SERVICE = 1;
const IPVS_SVC_ATTR_AF = 1;
const IPVS_SVC_ATTR_PROTOCOL = 2;
const IPVS_SVC_ATTR_ADDR = 3;
const IPVS_SVC_ATTR_PORT = 4;
const IPVS_SVC_ATTR_FWMARK = 5;
const IPVS_SVC_ATTR_SCHED_NAME = 6;
const IPVS_SVC_ATTR_FLAGS = 7;
const IPVS_SVC_ATTR_TIMEOUT = 8;
const IPVS_SVC_ATTR_NETMASK = 9;
const ALL_FLAGS = 0xffff_ffff;

/** The kernel's own note that the service is in its table; always there, and not ours to set. */
export const IP_VS_SVC_F_HASHED = 0x2;

/** What tells one service from another. */
export interface IpvsServiceKey {
  readonly protocol: Protocol;
  readonly ip: Ip;
  readonly port: number;
}

export interface IpvsService extends IpvsServiceKey {
  readonly scheduler: string;
  readonly flags: number;
  /** Of persistence, in seconds. */
  readonly timeout: number;
  /** How much of a client's address counts for persistence: 32 or 128 is all of it. */
  readonly clientPrefix: number;
}

/** Those for firewall marks, which have no address and are not ours, are left out. */
export function listServices(socket: NetlinkSocket, ipvs: number): readonly IpvsService[] {
  const messages = dumpMessages(socket, 'the virtual servers', getServices(ipvs));
  return messages.flatMap(({ payload }) => decodeService(payload) ?? []);
}

export function getServices(ipvs: number): NetlinkRequest {
  return ipvsRequest(ipvs, 'getService', () => undefined);
}

/** `refused` with ENOENT: the kernel has no such scheduler. */
export function newService(ipvs: number, service: IpvsService): Change {
  return {
    ...ipvsRequest(ipvs, 'newService', (writer) => writeService(writer, service)),
    expected: EXISTS,
  };
}

/** Takes effect at once; connections and destinations stay. */
export function setService(ipvs: number, service: IpvsService): Change {
  return { ...ipvsRequest(ipvs, 'setService', (writer) => writeService(writer, service)), expected: ABSENT };
}

export function deleteService(ipvs: number, key: IpvsServiceKey): Change {
  return {
    ...ipvsRequest(ipvs, 'deleteService', (writer) => writeServiceKey(writer, key)),
    expected: ABSENT,
  };
}

const ABSENT: ReadonlyMap<number, 'absent'> = new Map([[constants.errno.ESRCH, 'absent']]);

export function writeServiceKey(writer: MessageWriter, key: IpvsServiceKey): void {
  writer.nested(IPVS_CMD_ATTR_SERVICE, (nested) => writeKeyAttributes(nested, key));
}

export function decodeService(payload: Uint8Array): IpvsService | undefined {
  const nested = requiredAttribute(genericAttributes(payload), IPVS_CMD_ATTR_SERVICE, 'the virtual server');
  const attributes = attributesByType(nested);
  if (attributes.has(IPVS_SVC_ATTR_FWMARK)) return undefined;
  const value = (type: number, what: string): Uint8Array =>
    requiredAttribute(attributes, type, `the ${what} of a virtual server`);
  const family = familyOfNumber(decodeU16(value(IPVS_SVC_ATTR_AF, 'family')));
  const protocol = protocolOfNumber(decodeU16(value(IPVS_SVC_ATTR_PROTOCOL, 'protocol')));
  if (!family || !protocol) throw malformed('a virtual server of an unknown family or protocol');
  return {
    protocol,
    ip: decodeAddressField(value(IPVS_SVC_ATTR_ADDR, 'address'), family),
    port: decodeU16be(value(IPVS_SVC_ATTR_PORT, 'port')),
    scheduler: decodeString(value(IPVS_SVC_ATTR_SCHED_NAME, 'scheduler')),
    flags: decodeFlags(value(IPVS_SVC_ATTR_FLAGS, 'flags')),
    timeout: decodeU32(value(IPVS_SVC_ATTR_TIMEOUT, 'time-out')),
    clientPrefix: decodePrefix(value(IPVS_SVC_ATTR_NETMASK, 'netmask'), family),
  };
}

function writeService(writer: MessageWriter, service: IpvsService): void {
  const flags = new Uint8Array(new Uint32Array([service.flags, ALL_FLAGS]).buffer);
  writer.nested(IPVS_CMD_ATTR_SERVICE, (nested) => {
    writeKeyAttributes(nested, service);
    nested
      .string(IPVS_SVC_ATTR_SCHED_NAME, service.scheduler)
      .attribute(IPVS_SVC_ATTR_FLAGS, flags)
      .u32(IPVS_SVC_ATTR_TIMEOUT, service.timeout);
    // A mask in the order of the network for IPv4, a number of bits in the machine's order for IPv6.
    if (familyOf(service.ip) === 'IPv4') nested.u32be(IPVS_SVC_ATTR_NETMASK, netmask(service.clientPrefix));
    else nested.u32(IPVS_SVC_ATTR_NETMASK, service.clientPrefix);
  });
}

function writeKeyAttributes(writer: MessageWriter, { protocol, ip, port }: IpvsServiceKey): void {
  writer
    .u16(IPVS_SVC_ATTR_AF, addressFamily(familyOf(ip)))
    .u16(IPVS_SVC_ATTR_PROTOCOL, protocolNumber(protocol));
  writeAddressField(writer, IPVS_SVC_ATTR_ADDR, ip).u16be(IPVS_SVC_ATTR_PORT, port);
}

/** struct ip_vs_flags: flags, mask. */
function decodeFlags(value: Uint8Array): number {
  if (value.length !== 8) throw malformed(`flags of ${value.length} bytes`);
  return decodeU32(value.subarray(0, 4));
}

function netmask(prefix: number): number {
  return prefix === 0 ? 0 : (ALL_FLAGS << (32 - prefix)) >>> 0;
}

function decodePrefix(value: Uint8Array, family: Family): number {
  if (family === 'IPv6') return decodeU32(value);
  const mask = decodeU32be(value);
  const prefix = Math.clz32(~mask);
  if (netmask(prefix) !== mask) throw malformed(`the netmask ${mask.toString(16)} has holes`);
  return prefix;
}
