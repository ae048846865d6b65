/** Addresses, families and protocols as the kernel's numbers and bytes. From sys/socket.h and linux/in.h. */
import { type Cidr, type Family, type Ip, parseBytes, parseIp, prefixOf } from '../model/ip.ts';
import { malformedMessage, viewOf } from './codec.ts';
import { type AttributeKind, bytesAt, u8, words } from './kinds.ts';

export const AF_UNSPEC = 0;
export const FAMILY_NUMBERS = { IPv4: 2, IPv6: 10 } as const;

export function addressFamily(family: Family): number {
  return FAMILY_NUMBERS[family];
}

/** `undefined` for a family that is not IP. */
export function familyOfNumber(number: number): Family | undefined {
  if (number === FAMILY_NUMBERS.IPv4) return 'IPv4';
  return number === FAMILY_NUMBERS.IPv6 ? 'IPv6' : undefined;
}

export const PROTOCOL_NUMBERS = { TCP: 6, UDP: 17, SCTP: 132 } as const;
export type TransportProtocol = keyof typeof PROTOCOL_NUMBERS;
/** In one byte. */
export const protocolByte = words<TransportProtocol>(PROTOCOL_NUMBERS, u8);

/** Four or sixteen bytes. */
export const address: AttributeKind<Ip> = {
  write: (writer, type, ip) => {
    const bytes = new Uint8Array(ip.includes(':') ? 16 : 4);
    writeIp(ip, bytes, 0);
    writer.attribute(type, bytes);
  },
  read: (view, start, end) => decodeIp(bytesAt(view, start, end)),
};

export function ipBytes(ip: Ip): Uint8Array {
  const bytes = parseBytes(ip);
  if (!bytes) throw malformedMessage(`${ip} is no address`);
  return bytes;
}

/** Four or sixteen bytes as canonical text. */
export function decodeIp(bytes: Uint8Array): Ip {
  // Written out: large tables spend most of their time here.
  if (bytes.length === 4) return `${bytes[0]}.${bytes[1]}.${bytes[2]}.${bytes[3]}` as Ip;
  const view = viewOf(bytes);
  const group = (_: unknown, index: number): string => view.getUint16(index * 2).toString(16);
  const ip = bytes.length === 16 ? parseIp(Array.from({ length: 8 }, group).join(':')) : undefined;
  if (!ip) throw malformedMessage(`${bytes.length} bytes where an address belongs`);
  return ip;
}

const DOT = '.'.charCodeAt(0);
const COLON = ':'.charCodeAt(0);
const ZERO = '0'.charCodeAt(0);
const NINE = '9'.charCodeAt(0);
const LETTER_OFFSET = 'a'.charCodeAt(0) - 10;

/**
 * Four or sixteen bytes, which must be zero before. A canonical address goes straight into bytes: a start has hundreds of
 * thousands of them.
 */
export function writeIp(ip: Ip, into: Uint8Array, at: number): void {
  if (!ip.includes(':')) writeIpv4(ip, into, at);
  // IPv6 addresses with dots are rare.
  else if (ip.includes('.')) into.set(ipBytes(ip), at);
  else writeIpv6(ip, into, at);
}

function writeIpv4(ip: Ip, into: Uint8Array, start: number): void {
  let at = start;
  let octet = 0;
  for (let index = 0; index < ip.length; index++) {
    const code = ip.charCodeAt(index);
    if (code === DOT) {
      into[at++] = octet;
      octet = 0;
    } else octet = octet * 10 + code - ZERO;
  }
  into[at] = octet;
}

function writeIpv6(ip: Ip, into: Uint8Array, start: number): void {
  let at = start;
  let gap = -1;
  let group = 0;
  let digits = 0;
  for (let index = 0; index < ip.length; index++) {
    const code = ip.charCodeAt(index);
    if (code !== COLON) {
      group = group * 16 + (code <= NINE ? code - ZERO : code - LETTER_OFFSET);
      digits += 1;
      continue;
    }
    if (digits > 0) {
      into[at++] = group >> 8;
      into[at++] = group & 0xff;
    } else gap = at;
    group = 0;
    digits = 0;
  }
  if (digits > 0) {
    into[at++] = group >> 8;
    into[at++] = group & 0xff;
  }
  if (gap < 0) return;
  const end = start + 16;
  into.copyWithin(end - (at - gap), gap, at);
  into.fill(0, gap, end - (at - gap));
}

/** The addresses of a network, as the keys of intervals. `beyond` is `undefined` when it ends where all addresses do. */
export function rangeOf(cidr: Cidr): {
  readonly first: Uint8Array;
  readonly last: Uint8Array;
  readonly beyond: Uint8Array | undefined;
} {
  const first = ipBytes(cidr.slice(0, cidr.indexOf('/')) as Ip);
  const last = first.slice();
  for (let bit = prefixOf(cidr); bit < last.length * 8; bit++)
    last[bit >> 3] = (last[bit >> 3] ?? 0) | (0x80 >> (bit & 7));
  return { first, last, beyond: next(last) };
}

function next(address: Uint8Array): Uint8Array | undefined {
  const bytes = address.slice();
  for (let index = bytes.length - 1; index >= 0; index--) {
    const byte = ((bytes[index] ?? 0) + 1) & 0xff;
    bytes[index] = byte;
    if (byte !== 0) return bytes;
  }
  return undefined;
}
