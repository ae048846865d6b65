/** Real servers of IPVS. */
import { constants } from 'node:os';
import { type Ip, familyOf } from '../model/ip.ts';
import { type Change, type ChangeOutcome } from './batch.ts';
import {
  type MessageWriter,
  attributesByType,
  decodeU16,
  decodeU16be,
  decodeU32,
  malformed,
  requiredAttribute,
} from './codec.ts';
import { dumpMessages } from './dump.ts';
import { genericAttributes } from './genetlink.ts';
import { addressFamily, familyOfNumber } from './inet.ts';
import { decodeAddressField, ipvsRequest, writeAddressField } from './ipvs.ts';
import { type IpvsServiceKey, writeServiceKey } from './ipvsService.ts';
import type { NetlinkRequest, NetlinkSocket } from './socket.ts';

const IPVS_CMD_ATTR_DEST = 2;
const IPVS_DEST_ATTR_ADDR = 1;
const IPVS_DEST_ATTR_PORT = 2;
const IPVS_DEST_ATTR_FWD_METHOD = 3;
const IPVS_DEST_ATTR_WEIGHT = 4;
const IPVS_DEST_ATTR_U_THRESH = 5;
const IPVS_DEST_ATTR_L_THRESH = 6;
const IPVS_DEST_ATTR_ACTIVE_CONNS = 7;
const IPVS_DEST_ATTR_INACT_CONNS = 8;
const IPVS_DEST_ATTR_ADDR_FAMILY = 11;
const IP_VS_CONN_F_FWD_MASK = 7;
const FORWARDING = ['masquerade', 'local', 'tunnel', 'route', 'bypass'] as const;

export type IpvsForwarding = (typeof FORWARDING)[number];

export interface IpvsDestinationKey {
  readonly ip: Ip;
  readonly port: number;
}

/** Forwarded by masquerading, with no limits on connections. */
export interface IpvsDestination extends IpvsDestinationKey {
  /** 0: no new connections. */
  readonly weight: number;
}

export interface IpvsDestinationState extends IpvsDestination {
  readonly forwarding: IpvsForwarding;
  readonly activeConnections: number;
  readonly inactiveConnections: number;
}

/** Of a service that is not there: none, for so the kernel answers. */
export function listDestinations(
  socket: NetlinkSocket,
  ipvs: number,
  service: IpvsServiceKey,
): readonly IpvsDestinationState[] {
  const request = getDestinations(ipvs, service);
  return dumpMessages(socket, 'the real servers', request).map(({ payload }) => decodeDestination(payload));
}

export function getDestinations(ipvs: number, service: IpvsServiceKey): NetlinkRequest {
  return ipvsRequest(ipvs, 'getDestination', (writer) => writeServiceKey(writer, service));
}

/** `absent`: the service is. */
export function newDestination(ipvs: number, service: IpvsServiceKey, destination: IpvsDestination): Change {
  return {
    ...ipvsRequest(ipvs, 'newDestination', (writer) => writeDestination(writer, service, destination)),
    expected: NEW_OUTCOMES,
  };
}

/** `absent`: the service or the destination is. */
export function setDestination(ipvs: number, service: IpvsServiceKey, destination: IpvsDestination): Change {
  return {
    ...ipvsRequest(ipvs, 'setDestination', (writer) => writeDestination(writer, service, destination)),
    expected: ABSENT,
  };
}

/** Its connections end at their next packet, or when they expire. */
export function deleteDestination(ipvs: number, service: IpvsServiceKey, key: IpvsDestinationKey): Change {
  return {
    ...ipvsRequest(ipvs, 'deleteDestination', (writer) => {
      writeServiceKey(writer, service);
      writer.nested(IPVS_CMD_ATTR_DEST, (nested) => writeKey(nested, key));
    }),
    expected: ABSENT,
  };
}

type Expected = Extract<ChangeOutcome['state'], 'exists' | 'absent'>;
const { EEXIST, ENOENT, ESRCH } = constants.errno;
const NEW_OUTCOMES = new Map<number, Expected>([
  [EEXIST, 'exists'],
  [ESRCH, 'absent'],
]);
const ABSENT = new Map<number, Expected>([
  [ESRCH, 'absent'],
  [ENOENT, 'absent'],
]);

export function decodeDestination(payload: Uint8Array): IpvsDestinationState {
  const nested = requiredAttribute(genericAttributes(payload), IPVS_CMD_ATTR_DEST, 'the real server');
  const attributes = attributesByType(nested);
  const value = (type: number, what: string): Uint8Array =>
    requiredAttribute(attributes, type, `the ${what} of a real server`);
  const number = (type: number, what: string): number => decodeU32(value(type, what));
  const family = familyOfNumber(decodeU16(value(IPVS_DEST_ATTR_ADDR_FAMILY, 'family')));
  const method = number(IPVS_DEST_ATTR_FWD_METHOD, 'forwarding method') & IP_VS_CONN_F_FWD_MASK;
  const forwarding = FORWARDING[method];
  if (!family || !forwarding) throw malformed('a real server of an unknown family or forwarding method');
  return {
    ip: decodeAddressField(value(IPVS_DEST_ATTR_ADDR, 'address'), family),
    port: decodeU16be(value(IPVS_DEST_ATTR_PORT, 'port')),
    weight: number(IPVS_DEST_ATTR_WEIGHT, 'weight'),
    forwarding,
    activeConnections: number(IPVS_DEST_ATTR_ACTIVE_CONNS, 'count of active connections'),
    inactiveConnections: number(IPVS_DEST_ATTR_INACT_CONNS, 'count of inactive connections'),
  };
}

function writeDestination(
  writer: MessageWriter,
  service: IpvsServiceKey,
  destination: IpvsDestination,
): void {
  writeServiceKey(writer, service);
  writer.nested(IPVS_CMD_ATTR_DEST, (nested) => {
    writeKey(nested, destination);
    nested
      .u32(IPVS_DEST_ATTR_FWD_METHOD, FORWARDING.indexOf('masquerade'))
      .u32(IPVS_DEST_ATTR_WEIGHT, destination.weight)
      .u32(IPVS_DEST_ATTR_U_THRESH, 0)
      .u32(IPVS_DEST_ATTR_L_THRESH, 0);
  });
}

function writeKey(writer: MessageWriter, { ip, port }: IpvsDestinationKey): void {
  writeAddressField(writer, IPVS_DEST_ATTR_ADDR, ip)
    .u16be(IPVS_DEST_ATTR_PORT, port)
    .u16(IPVS_DEST_ATTR_ADDR_FAMILY, addressFamily(familyOf(ip)));
}
