/**
 * Matches and targets of iptables in rules of nf_tables, as `iptables-nft` writes them: those that decide most often. What
 * is not here is not evaluated. Structures from linux/netfilter/xt_*.h, numbers in the machine's byte order.
 */
import { LITTLE_ENDIAN, viewOf } from '../../../netlink/codec.ts';
import { decodeIp } from '../../../netlink/inet.ts';
import type { Expression } from '../../../netlink/nftables/expressions.ts';
import type { Effect } from './machine.ts';
import { addressType, type PacketFacts } from './packetBytes.ts';

type XtMatch = Extract<Expression, { readonly kind: 'xt match' }>;
type XtTarget = Extract<Expression, { readonly kind: 'xt target' }>;

const MISMATCH: Effect = { kind: 'mismatch' };
const UNKNOWN: Effect = { kind: 'unknown' };

/** `undefined`: it matches. */
export function matchOfIptables({ name, revision, info }: XtMatch, facts: PacketFacts): Effect {
  const isMatch = MATCHES.get(name)?.(viewOf(info), facts, revision);
  if (isMatch === undefined) return UNKNOWN;
  return isMatch ? undefined : MISMATCH;
}

/** `undefined`: it is not known, or the structure is another one than is expected. */
type Evaluate = (info: DataView, facts: PacketFacts, revision: number) => boolean | undefined;

const STATE_NEW = 1 << 3;
const STATE_SNAT = 1 << 6;
const STATE_DNAT = 1 << 7;
const ANY_PORT = 0xffff;

const MATCHES: ReadonlyMap<string, Evaluate> = new Map<string, Evaluate>([
  ['comment', () => true],
  ['state', (info, facts) => sized(info, 4, () => hasState(u32(info, 0), facts))],
  ['conntrack', conntrack],
  ['addrtype', addressTypes],
  ['mark', mark],
  ['multiport', multiport],
  ['tcp', (info, facts) => sized(info, 12, () => tcp(info, facts))],
  ['udp', (info, facts) => sized(info, 10, () => ports(info, u8(info, 8), facts))],
]);

function sized<T>(info: DataView, bytes: number, read: () => T): T | undefined {
  return info.byteLength < bytes ? undefined : read();
}

function u8(info: DataView, at: number): number {
  return info.getUint8(at);
}

function u16(info: DataView, at: number): number {
  return info.getUint16(at, LITTLE_ENDIAN);
}

function u32(info: DataView, at: number): number {
  return info.getUint32(at, LITTLE_ENDIAN);
}

function hasState(mask: number, { way }: PacketFacts): boolean {
  const state = STATE_NEW | (way.isRewritten ? STATE_DNAT : 0) | (way.masqueraded ? STATE_SNAT : 0);
  return (mask & state) !== 0;
}

const MATCH_FLAGS_AT = 146;
const CONNTRACK_STATE = 1;

/** struct xt_conntrack_mtinfo2 and 3: only what is about the state. */
function conntrack(info: DataView, facts: PacketFacts, revision: number): boolean | undefined {
  if (revision < 2) return undefined;
  return sized(info, MATCH_FLAGS_AT + 6, () => {
    if (u16(info, MATCH_FLAGS_AT) !== CONNTRACK_STATE) return undefined;
    const isInverted = (u16(info, MATCH_FLAGS_AT + 2) & CONNTRACK_STATE) !== 0;
    return hasState(u16(info, MATCH_FLAGS_AT + 4), facts) !== isInverted;
  });
}

const INVERT_SOURCE = 1;
const INVERT_DESTINATION = 2;

/** struct xt_addrtype_info_v1 */
function addressTypes(info: DataView, facts: PacketFacts, revision: number): boolean | undefined {
  if (revision !== 1) return undefined;
  return sized(info, 8, () => {
    const [source, destination, flags] = [u16(info, 0), u16(info, 2), u32(info, 4)];
    if ((flags & ~(INVERT_SOURCE | INVERT_DESTINATION)) !== 0) return undefined;
    const { way, isLocal } = facts;
    const isOf = (types: number, ip: typeof way.source, invert: number): boolean =>
      types === 0 || ((types & (1 << addressType(ip, isLocal))) !== 0) !== ((flags & invert) !== 0);
    return isOf(source, way.source, INVERT_SOURCE) && isOf(destination, way.destination, INVERT_DESTINATION);
  });
}

/** struct xt_mark_mtinfo1 */
function mark(info: DataView, { way }: PacketFacts, revision: number): boolean | undefined {
  if (revision !== 1) return undefined;
  return sized(info, 9, () => ((way.mark & u32(info, 4)) >>> 0 === u32(info, 0)) !== (u8(info, 8) !== 0));
}

const MOST_PORTS = 15;
const TO_DESTINATION = 1;

/** struct xt_multiport_v1 */
function multiport(info: DataView, { way }: PacketFacts, revision: number): boolean | undefined {
  if (revision !== 1) return undefined;
  return sized(info, 48, () => {
    const count = u8(info, 1);
    if (u8(info, 0) !== TO_DESTINATION || count > MOST_PORTS) return undefined;
    let isMatch = false;
    for (let index = 0; index < count; index++) {
      const first = u16(info, 2 + 2 * index);
      const isRange = u8(info, 2 + 2 * MOST_PORTS + index) !== 0;
      const last = isRange && index + 1 < count ? u16(info, 2 + 2 * ++index) : first;
      isMatch ||= way.port >= first && way.port <= last;
    }
    return isMatch !== (u8(info, 47) !== 0);
  });
}

const INVERT_PORT = 2;
const INVERT_FLAGS = 4;
const SYN = 0x02;

/** The ports of struct xt_tcp and xt_udp. The client's own is not known. */
function ports(info: DataView, invert: number, { way }: PacketFacts): boolean | undefined {
  const isThere = way.port >= u16(info, 4) && way.port <= u16(info, 6);
  if (isThere === ((invert & INVERT_PORT) !== 0)) return false;
  return u16(info, 0) === 0 && u16(info, 2) === ANY_PORT ? true : undefined;
}

/** struct xt_tcp */
function tcp(info: DataView, facts: PacketFacts): boolean | undefined {
  const [option, mask, wanted, invert] = [u8(info, 8), u8(info, 9), u8(info, 10), u8(info, 11)];
  const hasFlags = (SYN & mask) === wanted;
  if (hasFlags === ((invert & INVERT_FLAGS) !== 0)) return false;
  const isMatch = ports(info, invert, facts);
  return isMatch && option !== 0 ? undefined : isMatch;
}

/** What only looks at a packet, or changes something that no verdict depends on. */
const HARMLESS: ReadonlySet<string> = new Set(['LOG', 'NFLOG', 'TCPMSS', 'CHECKSUM', 'AUDIT']);

export function targetOfIptables({ name, revision, info }: XtTarget, { way }: PacketFacts): Effect {
  if (HARMLESS.has(name)) return undefined;
  const view = viewOf(info);
  switch (name) {
    case 'REJECT':
      return { kind: 'verdict', verdict: { kind: 'reject' } };
    case 'MASQUERADE':
    case 'SNAT':
      return { kind: 'verdict', verdict: { kind: 'masquerade' } };
    case 'MARK': {
      if (revision !== 2 || view.byteLength < 8) return UNKNOWN;
      return { kind: 'mark', mark: ((way.mark & ~u32(view, 4)) ^ u32(view, 0)) >>> 0 };
    }
    case 'DNAT':
      return revision === 2 ? destination(view, info, way) : UNKNOWN;
    default:
      return UNKNOWN;
  }
}

const MAP_IPS = 1;
const PROTO_SPECIFIED = 2;

/** struct nf_nat_range2, where it is one address and at most one port. */
function destination(view: DataView, info: Uint8Array, way: PacketFacts['way']): Effect {
  if (view.byteLength < 40) return UNKNOWN;
  const flags = u32(view, 0);
  const bytes = way.destination.includes(':') ? 16 : 4;
  const [first, last] = [info.subarray(4, 4 + bytes), info.subarray(20, 20 + bytes)];
  const hasPort = (flags & PROTO_SPECIFIED) !== 0;
  const isRange = Buffer.compare(first, last) !== 0 || (hasPort && view.getUint16(36) !== view.getUint16(38));
  if (isRange) return UNKNOWN;
  const ip = (flags & MAP_IPS) === 0 ? way.destination : decodeIp(first);
  return { kind: 'verdict', verdict: { kind: 'dnat', ip, port: hasPort ? view.getUint16(36) : way.port } };
}
