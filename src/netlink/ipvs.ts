/** IPVS: virtual servers, their real servers, and its time-outs. Numbers from linux/ip_vs.h. */
import { constants } from 'node:os';
import { type Family, type Ip, familyOf } from '../model/ip.ts';
import { AttributeTable, optional, required, type ValueOf } from './attributes.ts';
import { type Change, EXISTS, type NetlinkRequest, NOTHING } from './request.ts';
import { LITTLE_ENDIAN, malformedMessage, type MessageWriter, viewOf } from './codec.ts';
import { genericRequest, GENLMSGHDR_BYTES } from './generic.ts';
import { decodeIp, FAMILY_NUMBERS, PROTOCOL_NUMBERS, type TransportProtocol, writeIp } from './inet.ts';
import { type AttributeKind, bytes, count64, text, u16, u16be, u32, u32be, words } from './kinds.ts';

const COMMANDS = {
  newService: 1,
  setService: 2,
  deleteService: 3,
  getService: 4,
  newDestination: 5,
  setDestination: 6,
  deleteDestination: 7,
  getDestination: 8,
  setConfig: 12,
} as const;
/** IPVS_CMD_ATTR_SERVICE and IPVS_CMD_ATTR_DEST */
const SERVICE_NEST = 1;
const DESTINATION_NEST = 2;

const ALL_BITS = 0xffff_ffff;
/** union nf_inet_addr, of which an IPv4 address takes the first four. */
const ADDRESS_BYTES = 16;
/** Overwritten by each address; writing an attribute copies it. */
const FIELD = new Uint8Array(ADDRESS_BYTES);

/** Written as an address, read as bytes: their family is in another attribute, which may come later. */
const addressField: AttributeKind<Ip | Uint8Array> = {
  write: (writer, type, ip) => {
    FIELD.fill(0);
    if (typeof ip === 'string') writeIp(ip, FIELD, 0);
    writer.attribute(type, FIELD);
  },
  read: bytes.read,
};

const familyField = words(FAMILY_NUMBERS, u16);

/** struct ip_vs_flags: flags, and which of them are meant. */
const flagsField: AttributeKind<number> = {
  write: (writer, type, flags) =>
    writer.attribute(type, new Uint8Array(new Uint32Array([flags, ALL_BITS]).buffer)),
  read: (view, start, end) => u32.read(view, start, end - 4),
};

const SERVICE = new AttributeTable('a virtual server', {
  family: required([SERVICE_NEST, 1], familyField),
  protocol: required([SERVICE_NEST, 2], words(PROTOCOL_NUMBERS, u16)),
  ip: required([SERVICE_NEST, 3], addressField),
  port: required([SERVICE_NEST, 4], u16be),
  scheduler: required([SERVICE_NEST, 6], text),
  flags: required([SERVICE_NEST, 7], flagsField),
  timeout: required([SERVICE_NEST, 8], u32),
  /** IPv4: a mask in network order. IPv6: a prefix length in the machine's order. */
  netmask: required([SERVICE_NEST, 9], bytes),
});
const FIREWALL_MARK = new AttributeTable('a virtual server', {
  mark: optional([SERVICE_NEST, 5], u32),
});

const DESTINATION = new AttributeTable('a real server', {
  ip: required([DESTINATION_NEST, 1], addressField),
  port: required([DESTINATION_NEST, 2], u16be),
  family: required([DESTINATION_NEST, 11], familyField),
  method: required([DESTINATION_NEST, 3], u32),
  weight: required([DESTINATION_NEST, 4], u32),
  upperThreshold: optional([DESTINATION_NEST, 5], u32),
  lowerThreshold: optional([DESTINATION_NEST, 6], u32),
  activeConnections: required([DESTINATION_NEST, 7], u32),
  inactiveConnections: required([DESTINATION_NEST, 8], u32),
});

/** Since Linux 4.1. The kernel updates them every two seconds. */
const SERVICE_COUNTERS = new AttributeTable('the counters of a virtual server', {
  connections: optional([SERVICE_NEST, 12, 1], count64),
  packets: optional([SERVICE_NEST, 12, 2], count64),
});
const DESTINATION_COUNTERS = new AttributeTable('the counters of a real server', {
  connections: optional([DESTINATION_NEST, 12, 1], count64),
  packets: optional([DESTINATION_NEST, 12, 2], count64),
});
/** Connections to it and packets of clients, since it was made. */
type IpvsCounters = ValueOf<typeof SERVICE_COUNTERS>;

/** In whole seconds. */
const TIMEOUTS = new AttributeTable('the time-outs of IPVS', {
  tcp: required(4, u32),
  tcpFin: required(5, u32),
  udp: required(6, u32),
});
export type IpvsTimeouts = ValueOf<typeof TIMEOUTS>;

/** Set by the kernel: the service is in its table. */
export const IP_VS_SVC_F_HASHED = 0x2;
/** The forwarding method of all ours. */
const IP_VS_CONN_F_MASQ = 0;

/** Identifies a service. */
export interface IpvsServiceKey {
  readonly protocol: TransportProtocol;
  readonly ip: Ip;
  readonly port: number;
}

interface IpvsService extends IpvsServiceKey {
  readonly scheduler: string;
  readonly flags: number;
  /** The persistence time-out, in seconds. */
  readonly timeout: number;
  /** The prefix of a client's address that persistence compares: 32 or 128 is all of it. */
  readonly clientPrefix: number;
}

interface IpvsDestinationKey {
  readonly ip: Ip;
  readonly port: number;
}

/** Forwarded by masquerading, with no limits on connections. */
interface IpvsDestination extends IpvsDestinationKey {
  /** 0: no new connections. */
  readonly weight: number;
}

interface IpvsDestinationState extends IpvsDestination {
  readonly activeConnections: number;
  readonly inactiveConnections: number;
}

const { EEXIST, ENOENT, ESRCH } = constants.errno;
const ABSENT: Change['expected'] = new Map([[ESRCH, 'absent']]);
const NEW_DESTINATION: Change['expected'] = new Map([
  [EEXIST, 'exists'],
  [ESRCH, 'absent'],
]);
const ABSENT_DESTINATION: Change['expected'] = new Map([
  [ESRCH, 'absent'],
  [ENOENT, 'absent'],
]);

/** A dump. */
export function getServices(ipvs: number): NetlinkRequest {
  return genericRequest(ipvs, COMMANDS.getService);
}

/** A dump. Empty where the service does not exist. */
export function getDestinations(ipvs: number, service: IpvsServiceKey): NetlinkRequest {
  return genericRequest(ipvs, COMMANDS.getDestination, (writer) => writeKey(writer, service));
}

/** `refused` with ENOENT: the kernel has no such scheduler. */
export function newService(ipvs: number, service: IpvsService): Change {
  return change(ipvs, 'newService', EXISTS, (writer) => writeService(writer, service));
}

/** Takes effect immediately; connections and destinations stay. */
export function setService(ipvs: number, service: IpvsService): Change {
  return change(ipvs, 'setService', ABSENT, (writer) => writeService(writer, service));
}

export function deleteService(ipvs: number, key: IpvsServiceKey): Change {
  return change(ipvs, 'deleteService', ABSENT, (writer) => writeKey(writer, key));
}

/** `absent`: there is no such service. */
export function newDestination(ipvs: number, service: IpvsServiceKey, destination: IpvsDestination): Change {
  return change(ipvs, 'newDestination', NEW_DESTINATION, (writer) =>
    writeDestination(writer, service, destination),
  );
}

/** `absent`: there is no such service or destination. */
export function setDestination(ipvs: number, service: IpvsServiceKey, destination: IpvsDestination): Change {
  return change(ipvs, 'setDestination', ABSENT_DESTINATION, (writer) =>
    writeDestination(writer, service, destination),
  );
}

/** Its connections end at their next packet, or when they expire. */
export function deleteDestination(
  ipvs: number,
  service: IpvsServiceKey,
  { ip, port }: IpvsDestinationKey,
): Change {
  return change(ipvs, 'deleteDestination', ABSENT_DESTINATION, (writer) => {
    writeKey(writer, service);
    DESTINATION.write(writer, { ip, port, family: familyOf(ip) });
  });
}

/** 0 leaves a time-out as it is. */
export function setTimeouts(ipvs: number, timeouts: IpvsTimeouts): Change {
  return change(ipvs, 'setConfig', NOTHING, (writer) => TIMEOUTS.write(writer, timeouts));
}

function change(
  ipvs: number,
  command: keyof typeof COMMANDS,
  expected: Change['expected'],
  attributes: (writer: MessageWriter) => void,
): Change {
  return { ...genericRequest(ipvs, COMMANDS[command], attributes), expected };
}

function writeKey(writer: MessageWriter, { protocol, ip, port }: IpvsServiceKey): void {
  SERVICE.write(writer, { family: familyOf(ip), protocol, ip, port });
}

function writeService(writer: MessageWriter, service: IpvsService): void {
  const family = familyOf(service.ip);
  const { clientPrefix } = service;
  const netmask = new Uint8Array(4);
  if (family === 'IPv4') viewOf(netmask).setUint32(0, maskOf(clientPrefix));
  else viewOf(netmask).setUint32(0, clientPrefix, LITTLE_ENDIAN);
  SERVICE.write(writer, { ...service, family, netmask });
}

function writeDestination(
  writer: MessageWriter,
  service: IpvsServiceKey,
  { ip, port, weight }: IpvsDestination,
): void {
  writeKey(writer, service);
  // One literal: a start has tens of thousands of these, and spreading the key took twice as long.
  DESTINATION.write(writer, {
    ip,
    port,
    family: familyOf(ip),
    method: IP_VS_CONN_F_MASQ,
    weight,
    upperThreshold: 0,
    lowerThreshold: 0,
  });
}

/** `undefined`: a service for a firewall mark, which has no address. */
export function decodeService(payload: Uint8Array): IpvsService | undefined {
  if (FIREWALL_MARK.read(payload, GENLMSGHDR_BYTES).mark !== undefined) return undefined;
  const { family, ip, netmask, ...service } = SERVICE.read(payload, GENLMSGHDR_BYTES);
  return { ...service, ip: ipOf(ip, family), clientPrefix: prefixOfMask(netmask, family) };
}

export function decodeServiceCounters(payload: Uint8Array): IpvsCounters {
  return SERVICE_COUNTERS.read(payload, GENLMSGHDR_BYTES);
}

export function decodeDestinationCounters(payload: Uint8Array): IpvsCounters {
  return DESTINATION_COUNTERS.read(payload, GENLMSGHDR_BYTES);
}

export function decodeDestination(payload: Uint8Array): IpvsDestinationState {
  const destination = DESTINATION.read(payload, GENLMSGHDR_BYTES);
  const { family, ip, port, weight, activeConnections, inactiveConnections } = destination;
  return { ip: ipOf(ip, family), port, weight, activeConnections, inactiveConnections };
}

function ipOf(field: Ip | Uint8Array, family: Family): Ip {
  if (typeof field === 'string') return field;
  if (field.length !== ADDRESS_BYTES) throw malformedMessage(`an address of ${field.length} bytes in IPVS`);
  return decodeIp(family === 'IPv4' ? field.subarray(0, 4) : field);
}

function maskOf(prefix: number): number {
  return prefix === 0 ? 0 : (ALL_BITS << (32 - prefix)) >>> 0;
}

function prefixOfMask(netmask: Uint8Array, family: Family): number {
  if (family === 'IPv6') return u32.read(viewOf(netmask), 0, netmask.length);
  const mask = u32be.read(viewOf(netmask), 0, netmask.length);
  const prefix = Math.clz32(~mask);
  if (maskOf(prefix) !== mask) throw malformedMessage(`the netmask ${mask.toString(16)} has holes`);
  return prefix;
}
