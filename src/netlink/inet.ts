/** Addresses, families and protocols as the kernel's numbers and bytes. From sys/socket.h and linux/in.h. */
import { type Family, familyOf, type Ip, ipOfBytes, parseBytes, parseIp } from '../model/ip.ts';
import type { Protocol } from '../model/objects.ts';
import { malformed } from './codec.ts';

export const AF_UNSPEC = 0;
const AF_INET = 2;
const AF_INET6 = 10;

export function addressFamily(family: Family): number {
  return family === 'IPv4' ? AF_INET : AF_INET6;
}

/** `undefined` for a family that is not IP. */
export function familyOfNumber(number: number): Family | undefined {
  if (number === AF_INET) return 'IPv4';
  return number === AF_INET6 ? 'IPv6' : undefined;
}

const PROTOCOL_NUMBERS: Readonly<Record<Protocol, number>> = { TCP: 6, UDP: 17, SCTP: 132 };
const PROTOCOLS: readonly Protocol[] = ['TCP', 'UDP', 'SCTP'];

export function protocolNumber(protocol: Protocol): number {
  return PROTOCOL_NUMBERS[protocol];
}

/** `undefined` for a protocol that services cannot have. */
export function protocolOfNumber(number: number): Protocol | undefined {
  return PROTOCOLS.find((protocol) => PROTOCOL_NUMBERS[protocol] === number);
}

export function ipBytes(ip: Ip): Uint8Array {
  const bytes = parseBytes(ip);
  if (!bytes) throw malformed(`${ip} is no address`);
  return bytes;
}

/** The same into memory that is there already, of which the rest is left alone. Answers how many bytes it took. */
export function copyIp(ip: Ip, into: Uint8Array): number {
  if (familyOf(ip) === 'IPv6') {
    const bytes = ipBytes(ip);
    into.set(bytes);
    return bytes.length;
  }
  let index = 0;
  let octet = 0;
  // Canonical text has nothing but digits and dots; a start has hundreds of thousands of addresses.
  for (let at = 0; at < ip.length; at++) {
    const code = ip.charCodeAt(at);
    if (code === DOT) {
      into[index++] = octet;
      octet = 0;
    } else octet = octet * 10 + code - ZERO;
  }
  into[index] = octet;
  return index + 1;
}

const DOT = '.'.charCodeAt(0);
const ZERO = '0'.charCodeAt(0);

/** Four or sixteen bytes as canonical text. */
export function decodeIp(bytes: Uint8Array): Ip {
  const ip = bytes.length === 16 ? parseIp(groups(bytes)) : ipOfBytes(bytes);
  if (!ip) throw malformed(`${bytes.length} bytes where an address belongs`);
  return ip;
}

function groups(bytes: Uint8Array): string {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Array.from({ length: bytes.length >> 1 }, (_, index) => view.getUint16(index * 2).toString(16)).join(
    ':',
  );
}
