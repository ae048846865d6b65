/** IPVS as a whole: its time-outs, its version, and emptying it. */
import { type Change, NOTHING } from './batch.ts';
import { decodeU32, requiredAttribute } from './codec.ts';
import { askIpvs, ipvsRequest } from './ipvs.ts';
import type { NetlinkSocket } from './socket.ts';

const IPVS_CMD_ATTR_TIMEOUT_TCP = 4;
const IPVS_CMD_ATTR_TIMEOUT_TCP_FIN = 5;
const IPVS_CMD_ATTR_TIMEOUT_UDP = 6;
const IPVS_INFO_ATTR_VERSION = 1;
const IPVS_INFO_ATTR_CONN_TAB_SIZE = 2;

/** In whole seconds. */
export interface IpvsTimeouts {
  readonly tcp: number;
  readonly tcpFin: number;
  readonly udp: number;
}

export interface IpvsInfo {
  /** `1.2.1` */
  readonly version: string;
  readonly connectionTableSize: number;
}

export function readTimeouts(socket: NetlinkSocket, ipvs: number): IpvsTimeouts {
  const request = ipvsRequest(ipvs, 'getConfig', () => undefined);
  const attributes = askIpvs(socket, 'the time-outs of IPVS', request);
  const seconds = (type: number, what: string): number =>
    decodeU32(requiredAttribute(attributes, type, `the ${what} time-out`));
  return {
    tcp: seconds(IPVS_CMD_ATTR_TIMEOUT_TCP, 'TCP'),
    tcpFin: seconds(IPVS_CMD_ATTR_TIMEOUT_TCP_FIN, 'TCP FIN'),
    udp: seconds(IPVS_CMD_ATTR_TIMEOUT_UDP, 'UDP'),
  };
}

/** 0 leaves a time-out as it is. */
export function setTimeouts(ipvs: number, { tcp, tcpFin, udp }: IpvsTimeouts): Change {
  return {
    ...ipvsRequest(ipvs, 'setConfig', (writer) =>
      writer
        .u32(IPVS_CMD_ATTR_TIMEOUT_TCP, tcp)
        .u32(IPVS_CMD_ATTR_TIMEOUT_TCP_FIN, tcpFin)
        .u32(IPVS_CMD_ATTR_TIMEOUT_UDP, udp),
    ),
    expected: NOTHING,
  };
}

export function readInfo(socket: NetlinkSocket, ipvs: number): IpvsInfo {
  const request = ipvsRequest(ipvs, 'getInfo', () => undefined);
  const attributes = askIpvs(socket, 'the version of IPVS', request);
  const version = decodeU32(requiredAttribute(attributes, IPVS_INFO_ATTR_VERSION, 'the version of IPVS'));
  return {
    version: [version >> 16, version >> 8, version].map((part) => part & 0xff).join('.'),
    connectionTableSize: decodeU32(
      requiredAttribute(attributes, IPVS_INFO_ATTR_CONN_TAB_SIZE, 'the size of the connection table'),
    ),
  };
}

/** Every service with its destinations, whoever made them. */
export function flushIpvs(ipvs: number): Change {
  return { ...ipvsRequest(ipvs, 'flush', () => undefined), expected: NOTHING };
}
