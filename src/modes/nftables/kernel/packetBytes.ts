/** What a rule loads of the first packet of a connection, as bytes. What is not known of it is `undefined`. */
import { familyOf, type Ip } from '../../../model/ip.ts';
import { LITTLE_ENDIAN } from '../../../netlink/codec.ts';
import { FAMILY_NUMBERS, ipBytes, PROTOCOL_NUMBERS } from '../../../netlink/inet.ts';
import type { Expression } from '../../../netlink/nftables/expressions.ts';
import { addressType, CONNTRACK_STATES, conntrackStates, outInterface, SYN } from '../../matches.ts';
import type { PacketState, WalkContext } from '../../kernelRules.ts';

type ExpressionOf<Kind extends Expression['kind']> = Extract<Expression, { readonly kind: Kind }>;
export type Load = ExpressionOf<'payload' | 'meta' | 'ct' | 'fib'>;

const INTERFACE_NAME_BYTES = 16;
/** All registers together. */
const MAX_BYTES = 64;
const ETHERTYPE = { IPv4: [0x08, 0x00], IPv6: [0x86, 0xdd] } as const;
/** IPS_SRC_NAT and IPS_DST_NAT */
const STATUS = { SNAT: 0x10, DNAT: 0x20 } as const;
/** NF_CT_STATE_UNTRACKED_BIT; the other bits are those of iptables. */
const STATE_UNTRACKED = 64;
const STATE_BITS = 0xf;
const UNICAST = 1;

export function loadedBytes(
  expression: Load,
  state: PacketState,
  context: WalkContext,
): Uint8Array | undefined {
  switch (expression.kind) {
    case 'payload':
      return payloadBytes(expression, state);
    case 'meta':
      return metaBytes(expression, state, context);
    case 'ct':
      return conntrackBytes(expression, state);
    case 'fib': {
      const [side, ...others] = expression.of;
      if (expression.result !== 'type' || others.length > 0) return undefined;
      if (side !== 'saddr' && side !== 'daddr') return undefined;
      const ip = side === 'saddr' ? state.source : state.destination;
      return hostU32(addressType(ip, context.isLocal) ?? UNICAST);
    }
  }
}

function payloadBytes(
  { base, offset, bytes: length }: ExpressionOf<'payload'>,
  state: PacketState,
): Uint8Array | undefined {
  if (base === 'link' || length > MAX_BYTES) return undefined;
  const parts = base === 'network' ? networkParts(state) : transportParts(state);
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

interface HeaderPart {
  readonly at: number;
  readonly value: Uint8Array;
}

function networkParts({ source, destination, protocol }: PacketState): readonly HeaderPart[] {
  const isIpv4 = familyOf(destination) === 'IPv4';
  return [
    { at: isIpv4 ? 9 : 6, value: Uint8Array.of(PROTOCOL_NUMBERS[protocol]) },
    { at: isIpv4 ? 12 : 8, value: addressBytes(source) },
    { at: isIpv4 ? 16 : 24, value: addressBytes(destination) },
  ];
}

function transportParts({ port, protocol }: PacketState): readonly HeaderPart[] {
  const flags = { at: 13, value: Uint8Array.of(SYN) };
  return [{ at: 2, value: portBytes(port) }, ...(protocol === 'TCP' ? [flags] : [])];
}

/** A walk asks for a few addresses, hundreds of times. */
const MAX_KEPT = 4096;
const kept = new Map<Ip, Uint8Array>();

function addressBytes(ip: Ip): Uint8Array {
  let bytes = kept.get(ip);
  if (bytes) return bytes;
  if (kept.size >= MAX_KEPT) kept.clear();
  bytes = ipBytes(ip);
  kept.set(ip, bytes);
  return bytes;
}

function metaBytes(
  { key }: ExpressionOf<'meta'>,
  state: PacketState,
  context: WalkContext,
): Uint8Array | undefined {
  const family = familyOf(state.destination);
  switch (key) {
    case 'l4proto':
      return Uint8Array.of(PROTOCOL_NUMBERS[state.protocol]);
    case 'nfproto':
      return Uint8Array.of(FAMILY_NUMBERS[family]);
    case 'protocol':
      return Uint8Array.from(ETHERTYPE[family]);
    case 'mark':
      return hostU32(state.mark);
    case 'iifname':
      // Whether a forwarded packet still has one in postrouting depends on the kernel's version.
      if (context.hasArrived && state.point === 'postrouting') return undefined;
      return interfaceBytes(state.inInterface);
    case 'oifname': {
      const name = outInterface(state, context);
      return name === undefined ? undefined : interfaceBytes(name);
    }
    default:
      return undefined;
  }
}

function conntrackBytes({ key, direction }: ExpressionOf<'ct'>, state: PacketState): Uint8Array | undefined {
  const isOriginal = direction === undefined || direction === 'original';
  const states = conntrackStates(state);
  switch (key) {
    case 'state':
      return hostU32(states === CONNTRACK_STATES['UNTRACKED'] ? STATE_UNTRACKED : states & STATE_BITS);
    case 'status':
      return hostU32((state.isRewritten ? STATUS.DNAT : 0) | (state.masqueraded ? STATUS.SNAT : 0));
    case 'direction':
      return Uint8Array.of(0);
    case 'protocol':
      return Uint8Array.of(PROTOCOL_NUMBERS[state.protocol]);
    case 'ip saddr':
    case 'ip6 saddr':
      return isOriginal ? addressBytes(state.original.source) : undefined;
    case 'ip daddr':
    case 'ip6 daddr':
      return isOriginal ? addressBytes(state.original.destination) : undefined;
    case 'proto-dst':
      return isOriginal ? portBytes(state.original.port) : undefined;
    default:
      return undefined;
  }
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
