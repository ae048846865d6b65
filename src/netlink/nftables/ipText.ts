/** Canonical addresses straight into bytes: a start has hundreds of thousands of them. */
import { type Cidr, type Ip, prefixOf } from '../../model/ip.ts';
import { ipBytes } from '../inet.ts';

const DOT = '.'.charCodeAt(0);
const COLON = ':'.charCodeAt(0);
const ZERO = '0'.charCodeAt(0);
const NINE = '9'.charCodeAt(0);
const LETTER_OFFSET = 'a'.charCodeAt(0) - 10;

/** Four or sixteen bytes, which must be zero before. */
export function writeIp(ip: Ip, into: Uint8Array, at: number): void {
  if (!ip.includes(':')) writeIpv4(ip, into, at);
  // Dots in an IPv6 address are rare enough to be left to the thorough reader.
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

export interface AddressRange {
  readonly first: Uint8Array;
  readonly last: Uint8Array;
  /** `undefined` when the network ends where all addresses do. */
  readonly beyond: Uint8Array | undefined;
}

/** The addresses of a network, as the keys of intervals. */
export function rangeOf(cidr: Cidr): AddressRange {
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
