/** What a rule loads of the first packet of a connection, as bytes. What is not known of it is `undefined`. */
import { type Ip, isLoopback } from '../../../model/ip.ts';
import { LITTLE_ENDIAN } from '../../../netlink/codec.ts';
import { FAMILY_NUMBERS, ipBytes, PROTOCOL_NUMBERS } from '../../../netlink/inet.ts';
import { CT_STATUS_DNAT, type Expression, FIB_TYPE_LOCAL } from '../../../netlink/nftables/expressions.ts';
import type { Way } from '../../walk.ts';

type ExpressionOf<Kind extends Expression['kind']> = Extract<Expression, { readonly kind: Kind }>;

export interface PacketFacts {
  readonly way: Way<unknown>;
  readonly isLocal: (ip: Ip) => boolean;
  /** Came from elsewhere: this node did not send it. */
  readonly hasArrived: boolean;
}

const PROTOCOL_OFFSET = { IPv4: 9, IPv6: 6 } as const;
const ADDRESS_OFFSETS = {
  IPv4: { source: 12, destination: 16 },
  IPv6: { source: 8, destination: 24 },
} as const;
const DESTINATION_PORT_OFFSET = 2;
/** Of TCP. A connection begins with SYN and no other flag. */
const TCP_FLAGS_OFFSET = 13;
const SYN = 0x02;
const ETHERTYPE = { IPv4: [0x08, 0x00], IPv6: [0x86, 0xdd] } as const;
const INTERFACE_NAME_BYTES = 16;
/** All registers together. */
const LONGEST = 64;
/** NF_CT_STATE_BIT(IP_CT_NEW) and NF_CT_STATE_UNTRACKED_BIT */
const STATE_NEW = 8;
const STATE_UNTRACKED = 64;
/** IPS_SRC_NAT */
const CT_STATUS_SNAT = 0x10;
/** Of linux/rtnetlink.h */
const FIB_TYPE_UNICAST = 1;
const FIB_TYPE_BROADCAST = 3;
const FIB_TYPE_MULTICAST = 5;

export function payloadBytes(
  { base, offset, bytes: length }: ExpressionOf<'payload'>,
  { way }: PacketFacts,
): Uint8Array | undefined {
  if (base === 'link' || length > LONGEST) return undefined;
  const parts = base === 'network' ? networkParts(way) : transportParts(way);
  const result = new Uint8Array(length);
  for (let index = 0; index < length; ) {
    const part = parts.find(({ at, value }) => at <= offset + index && offset + index < at + value.length);
    if (!part) return undefined;
    const from = part.value.subarray(offset + index - part.at, offset + length - part.at);
    result.set(from, index);
    index += from.length;
  }
  return result;
}

/** A walk asks for a few addresses, hundreds of times. */
const MOST_KEPT = 4096;
const kept = new Map<Ip, Uint8Array>();

function addressBytes(ip: Ip): Uint8Array {
  let bytes = kept.get(ip);
  if (bytes) return bytes;
  if (kept.size >= MOST_KEPT) kept.clear();
  bytes = ipBytes(ip);
  kept.set(ip, bytes);
  return bytes;
}

interface HeaderPart {
  readonly at: number;
  readonly value: Uint8Array;
}

function networkParts({ source, destination, protocol }: Way<unknown>): readonly HeaderPart[] {
  const family = familyOfWay(destination);
  const offsets = ADDRESS_OFFSETS[family];
  return [
    { at: PROTOCOL_OFFSET[family], value: Uint8Array.of(PROTOCOL_NUMBERS[protocol]) },
    { at: offsets.source, value: addressBytes(source) },
    { at: offsets.destination, value: addressBytes(destination) },
  ];
}

function transportParts({ port, protocol }: Way<unknown>): readonly HeaderPart[] {
  return [
    { at: DESTINATION_PORT_OFFSET, value: portBytes(port) },
    ...(protocol === 'TCP' ? [{ at: TCP_FLAGS_OFFSET, value: Uint8Array.of(SYN) }] : []),
  ];
}

function familyOfWay(ip: Ip): 'IPv4' | 'IPv6' {
  return ip.includes(':') ? 'IPv6' : 'IPv4';
}

export function metaBytes({ key }: ExpressionOf<'meta'>, facts: PacketFacts): Uint8Array | undefined {
  const { way } = facts;
  const family = familyOfWay(way.destination);
  switch (key) {
    case 'l4proto':
      return Uint8Array.of(PROTOCOL_NUMBERS[way.protocol]);
    case 'nfproto':
      return Uint8Array.of(FAMILY_NUMBERS[family]);
    case 'protocol':
      return Uint8Array.from(ETHERTYPE[family]);
    case 'mark':
      return hostU32(way.mark);
    case 'iifname':
      return inInterface(facts);
    case 'oifname':
      return outInterface(facts);
    default:
      return undefined;
  }
}

/** Whether a forwarded packet still has one in postrouting depends on the kernel's version. */
function inInterface({ way, hasArrived }: PacketFacts): Uint8Array | undefined {
  return hasArrived && way.hook.endsWith(' postrouting') ? undefined : interfaceBytes(way.inInterface);
}

/** Before the routing there is none; afterwards it is known of what stays here. */
function outInterface({ way, isLocal }: PacketFacts): Uint8Array | undefined {
  if (/ (?:prerouting|input)$/.test(way.hook)) return interfaceBytes('');
  return isLocal(way.destination) ? interfaceBytes('lo') : undefined;
}

export function conntrackBytes(
  { key, direction }: ExpressionOf<'ct'>,
  { way }: PacketFacts,
): Uint8Array | undefined {
  const isOriginal = direction === undefined || direction === 'original';
  switch (key) {
    case 'state':
      return hostU32(way.isUntracked ? STATE_UNTRACKED : STATE_NEW);
    case 'status':
      return hostU32((way.isRewritten ? CT_STATUS_DNAT : 0) | (way.masqueraded ? CT_STATUS_SNAT : 0));
    case 'direction':
      return Uint8Array.of(0);
    case 'protocol':
      return Uint8Array.of(PROTOCOL_NUMBERS[way.protocol]);
    case 'ip saddr':
    case 'ip6 saddr':
      return isOriginal ? addressBytes(way.original.source) : undefined;
    case 'ip daddr':
    case 'ip6 daddr':
      return isOriginal ? addressBytes(way.original.destination) : undefined;
    case 'proto-dst':
      return isOriginal ? portBytes(way.original.port) : undefined;
    default:
      return undefined;
  }
}

export function fibBytes(
  { of, result }: ExpressionOf<'fib'>,
  { way, isLocal }: PacketFacts,
): Uint8Array | undefined {
  const [side, ...others] = of;
  if (result !== 'type' || others.length > 0 || (side !== 'saddr' && side !== 'daddr')) return undefined;
  return hostU32(addressType(side === 'saddr' ? way.source : way.destination, isLocal));
}

export function addressType(ip: Ip, isLocal: (ip: Ip) => boolean): number {
  if (isLoopback(ip) || isLocal(ip)) return FIB_TYPE_LOCAL;
  if (ip === '255.255.255.255') return FIB_TYPE_BROADCAST;
  const [first = 0] = addressBytes(ip);
  const isMulticast = ip.includes(':') ? first === 0xff : first >= 224 && first < 240;
  return isMulticast ? FIB_TYPE_MULTICAST : FIB_TYPE_UNICAST;
}

export function hostU32(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value >>> 0, LITTLE_ENDIAN);
  return bytes;
}

function portBytes(port: number): Uint8Array {
  return Uint8Array.of(port >> 8, port & 0xff);
}

function interfaceBytes(name: string): Uint8Array {
  const bytes = new Uint8Array(INTERFACE_NAME_BYTES);
  new TextEncoder().encodeInto(name, bytes.subarray(0, INTERFACE_NAME_BYTES - 1));
  return bytes;
}
