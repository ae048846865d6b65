/**
 * Matches and targets of iptables in rules of nf_tables, as `iptables-nft` writes them: those that decide most often. What
 * is not here is not evaluated.
 */
import { LITTLE_ENDIAN, viewOf } from '../../../netlink/codec.ts';
import { decodeIp } from '../../../netlink/inet.ts';
import type { Expression } from '../../../netlink/nftables/expressions.ts';
import {
  ADDRTYPE_INVERT_DESTINATION,
  ADDRTYPE_INVERT_SOURCE,
  CONNTRACK_STATE,
  CONNTRACK_STATES,
  NF_NAT_RANGE_MAP_IPS,
  NF_NAT_RANGE_PROTO_SPECIFIED,
  XT_MATCHES,
  XT_TARGETS,
} from '../../../netlink/xtables.ts';
import type { Effect } from './machine.ts';
import { addressType, type PacketFacts } from './packetBytes.ts';

type XtMatch = Extract<Expression, { readonly kind: 'xt match' }>;
type XtTarget = Extract<Expression, { readonly kind: 'xt target' }>;

const MISMATCH: Effect = { kind: 'mismatch' };
const UNKNOWN: Effect = { kind: 'unknown' };

/** `undefined`: it matches. */
export function matchOfIptables({ name, revision, info }: XtMatch, facts: PacketFacts): Effect {
  const isMatch = MATCHES.get(name)?.(info, facts, revision);
  if (isMatch === undefined) return UNKNOWN;
  return isMatch ? undefined : MISMATCH;
}

/** `undefined`: it is not known, or the structure is another one than is expected. */
type Evaluate = (info: Uint8Array, facts: PacketFacts, revision: number) => boolean | undefined;

const ANY_PORT = 0xffff;

const MATCHES: ReadonlyMap<string, Evaluate> = new Map<string, Evaluate>([
  ['comment', () => true],
  ['state', state],
  ['conntrack', conntrack],
  ['addrtype', addressTypes],
  ['mark', mark],
  ['multiport', multiport],
  ['tcp', tcp],
  ['udp', udp],
]);

/** struct xt_state_info */
function state(info: Uint8Array, facts: PacketFacts): boolean | undefined {
  return info.length < 4 ? undefined : hasState(viewOf(info).getUint32(0, LITTLE_ENDIAN), facts);
}

function hasState(mask: number, { way }: PacketFacts): boolean {
  const { NEW, SNAT, DNAT } = CONNTRACK_STATES;
  return (mask & (NEW | (way.isRewritten ? DNAT : 0) | (way.masqueraded ? SNAT : 0))) !== 0;
}

/** struct xt_conntrack_mtinfo2 and 3: only what is about the state. */
function conntrack(info: Uint8Array, facts: PacketFacts, revision: number): boolean | undefined {
  const fields = revision < 2 ? undefined : XT_MATCHES.conntrack.read(info);
  if (fields?.asked !== CONNTRACK_STATE) return undefined;
  return hasState(fields.states, facts) !== ((fields.invert & CONNTRACK_STATE) !== 0);
}

function addressTypes(
  info: Uint8Array,
  { way, isLocal }: PacketFacts,
  revision: number,
): boolean | undefined {
  const fields = revision === XT_MATCHES.addrtype.revision ? XT_MATCHES.addrtype.read(info) : undefined;
  if (!fields || (fields.flags & ~(ADDRTYPE_INVERT_SOURCE | ADDRTYPE_INVERT_DESTINATION)) !== 0)
    return undefined;
  const isOf = (types: number, ip: typeof way.source, invert: number): boolean =>
    types === 0 || ((types & (1 << addressType(ip, isLocal))) !== 0) !== ((fields.flags & invert) !== 0);
  return (
    isOf(fields.source, way.source, ADDRTYPE_INVERT_SOURCE) &&
    isOf(fields.destination, way.destination, ADDRTYPE_INVERT_DESTINATION)
  );
}

function mark(info: Uint8Array, { way }: PacketFacts, revision: number): boolean | undefined {
  const fields = revision === XT_MATCHES.mark.revision ? XT_MATCHES.mark.read(info) : undefined;
  return fields && ((way.mark & fields.mask) >>> 0 === fields.mark) !== (fields.isInverted !== 0);
}

const MOST_PORTS = 15;
const TO_DESTINATION = 1;

/** struct xt_multiport_v1 */
function multiport(info: Uint8Array, { way }: PacketFacts, revision: number): boolean | undefined {
  if (revision !== 1 || info.length < 48) return undefined;
  const view = viewOf(info);
  const count = view.getUint8(1);
  if (view.getUint8(0) !== TO_DESTINATION || count > MOST_PORTS) return undefined;
  const portAt = (index: number): number => view.getUint16(2 + 2 * index, LITTLE_ENDIAN);
  let isMatch = false;
  for (let index = 0; index < count; index++) {
    const first = portAt(index);
    const isRange = view.getUint8(2 + 2 * MOST_PORTS + index) !== 0;
    const last = isRange && index + 1 < count ? portAt(++index) : first;
    isMatch ||= way.port >= first && way.port <= last;
  }
  return isMatch !== (view.getUint8(47) !== 0);
}

const INVERT_PORT = 2;
const INVERT_FLAGS = 4;
const SYN = 0x02;

interface Ports {
  readonly sourcePort: number;
  readonly lastSourcePort: number;
  readonly port: number;
  readonly lastPort: number;
  readonly invert: number;
}

/** The client's own is not known. */
function hasPorts(
  { sourcePort, lastSourcePort, port, lastPort, invert }: Ports,
  { way }: PacketFacts,
): boolean | undefined {
  const isThere = way.port >= port && way.port <= lastPort;
  if (isThere === ((invert & INVERT_PORT) !== 0)) return false;
  return sourcePort === 0 && lastSourcePort === ANY_PORT ? true : undefined;
}

function udp(info: Uint8Array, facts: PacketFacts): boolean | undefined {
  const fields = XT_MATCHES.udp.read(info);
  return fields && hasPorts(fields, facts);
}

function tcp(info: Uint8Array, facts: PacketFacts): boolean | undefined {
  const fields = XT_MATCHES.tcp.read(info);
  if (!fields) return undefined;
  const hasFlags = (SYN & fields.flagMask) === fields.flags;
  if (hasFlags === ((fields.invert & INVERT_FLAGS) !== 0)) return false;
  const isMatch = hasPorts(fields, facts);
  return isMatch && fields.option !== 0 ? undefined : isMatch;
}

/** What only looks at a packet, or changes something that no verdict depends on. */
const HARMLESS: ReadonlySet<string> = new Set(['LOG', 'NFLOG', 'TCPMSS', 'CHECKSUM', 'AUDIT']);

export function targetOfIptables({ name, revision, info }: XtTarget, { way }: PacketFacts): Effect {
  if (HARMLESS.has(name)) return undefined;
  switch (name) {
    case 'REJECT':
      return { kind: 'verdict', verdict: { kind: 'reject' } };
    case 'MASQUERADE':
    case 'SNAT':
      return { kind: 'verdict', verdict: { kind: 'masquerade' } };
    case 'MARK': {
      const fields = revision === XT_TARGETS.MARK.revision ? XT_TARGETS.MARK.read(info) : undefined;
      return fields ? { kind: 'mark', mark: ((way.mark & ~fields.mask) ^ fields.mark) >>> 0 } : UNKNOWN;
    }
    case 'DNAT':
      return revision === XT_TARGETS.DNAT.revision ? destination(info, way) : UNKNOWN;
    default:
      return UNKNOWN;
  }
}

/** Where it is one address and at most one port. */
function destination(info: Uint8Array, way: PacketFacts['way']): Effect {
  const fields = XT_TARGETS.DNAT.read(info);
  if (!fields) return UNKNOWN;
  const bytes = way.destination.includes(':') ? 16 : 4;
  const [first, last] = [fields.first.subarray(0, bytes), fields.last.subarray(0, bytes)];
  const hasPort = (fields.flags & NF_NAT_RANGE_PROTO_SPECIFIED) !== 0;
  const isRange = Buffer.compare(first, last) !== 0 || (hasPort && fields.port !== fields.lastPort);
  if (isRange) return UNKNOWN;
  const ip = (fields.flags & NF_NAT_RANGE_MAP_IPS) === 0 ? way.destination : decodeIp(first);
  return { kind: 'verdict', verdict: { kind: 'dnat', ip, port: hasPort ? fields.port : way.port } };
}
