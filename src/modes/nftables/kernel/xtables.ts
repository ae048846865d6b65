/**
 * Matches and targets of iptables in rules of nf_tables, as `iptables-nft` writes them in tables that `nft` writes to as
 * well: those that decide most often. Structures are those of linux/netfilter/xt_*.h; what is not here is not evaluated.
 */
import { LITTLE_ENDIAN, viewOf } from '../../../netlink/codec.ts';
import { decodeIp } from '../../../netlink/inet.ts';
import type { Expression } from '../../../netlink/nftables/expressions.ts';
import {
  conntrackStates,
  hasAddressType,
  hasTcpFlags,
  includesEveryPort,
  includesPort,
  type MatchAnswer,
  negated,
  allOf,
  type PortRange,
} from '../../matches.ts';
import type { PacketState, WalkContext } from '../../kernelRules.ts';
import { type Effect, MISMATCH, UNKNOWN } from './effect.ts';

/** The structure of a match or a target: numbers in the machine's byte order. */
class Structure {
  readonly revision: number;
  readonly bytes: Uint8Array;
  readonly #view: DataView;

  constructor({ revision, info }: { readonly revision: number; readonly info: Uint8Array }) {
    this.revision = revision;
    this.bytes = info;
    this.#view = viewOf(info);
  }

  isOf(revision: number, length: number): boolean {
    return this.revision === revision && this.bytes.length >= length;
  }

  u8(at: number): number {
    return this.#view.getUint8(at);
  }

  u16(at: number): number {
    return this.#view.getUint16(at, LITTLE_ENDIAN);
  }

  u32(at: number): number {
    return this.#view.getUint32(at, LITTLE_ENDIAN);
  }

  ports(at: number): PortRange {
    return [this.u16(at), this.u16(at + 2)];
  }
}

type Match = (info: Structure, state: PacketState, context: WalkContext) => MatchAnswer;

const MATCHES: Readonly<Record<string, readonly [leastBytes: number, match: Match]>> = {
  comment: [0, () => true],
  state: [4, (info, state) => (info.u32(0) & conntrackStates(state)) !== 0],
  conntrack: [152, conntrack],
  addrtype: [8, addressTypes],
  mark: [9, mark],
  multiport: [48, multiport],
  tcp: [12, tcp],
  udp: [9, (info, state) => hasPorts(info, state, info.u8(8))],
};

/** `undefined`: it matches. */
export function matchOfIptables(
  expression: Extract<Expression, { readonly kind: 'xt match' }>,
  state: PacketState,
  context: WalkContext,
): Effect {
  const [leastBytes = 0, match] = MATCHES[expression.name] ?? [];
  if (!match || expression.info.length < leastBytes) return UNKNOWN;
  const answer = match(new Structure(expression), state, context);
  if (answer === undefined) return UNKNOWN;
  return answer ? undefined : MISMATCH;
}

/** XT_CONNTRACK_STATE */
const ASKS_STATE = 1;

/** struct xt_conntrack_mtinfo3: only what is about the state. */
function conntrack(info: Structure, state: PacketState): MatchAnswer {
  if (info.revision < 2 || info.u16(146) !== ASKS_STATE) return undefined;
  return negated((info.u16(150) & conntrackStates(state)) !== 0, (info.u16(148) & ASKS_STATE) !== 0);
}

const INVERT_SOURCE = 1;
const INVERT_DESTINATION = 2;

function addressTypes(info: Structure, state: PacketState, context: WalkContext): MatchAnswer {
  if (info.revision !== 1) return undefined;
  const flags = info.u32(4);
  if ((flags & ~(INVERT_SOURCE | INVERT_DESTINATION)) !== 0) return undefined;
  const answer = (at: number, ip: PacketState['source'], invert: number): MatchAnswer => {
    const types = info.u16(at);
    return types === 0 || negated(hasAddressType(types, ip, context), (flags & invert) !== 0);
  };
  return allOf([answer(0, state.source, INVERT_SOURCE), answer(2, state.destination, INVERT_DESTINATION)]);
}

function mark(info: Structure, state: PacketState): MatchAnswer {
  if (info.revision !== 1) return undefined;
  return negated((state.mark & info.u32(4)) >>> 0 === info.u32(0), info.u8(8) !== 0);
}

const MAX_PORTS = 15;
const TO_DESTINATION = 1;

/** struct xt_multiport_v1 */
function multiport(info: Structure, { port }: PacketState): MatchAnswer {
  const count = info.u8(1);
  if (info.revision !== 1 || info.u8(0) !== TO_DESTINATION || count > MAX_PORTS) return undefined;
  const ranges: PortRange[] = [];
  for (let index = 0; index < count; index++) {
    const first = info.u16(2 + 2 * index);
    const isRange = info.u8(2 + 2 * MAX_PORTS + index) !== 0;
    ranges.push([first, isRange && index + 1 < count ? info.u16(2 + 2 * ++index) : first]);
  }
  return negated(includesPort(ranges, port), info.u8(47) !== 0);
}

const INVERT_PORT = 2;
const INVERT_FLAGS = 4;

/** struct xt_tcp and xt_udp begin with the ports of the client, and those that are dialled. */
function hasPorts(info: Structure, { port }: PacketState, invert: number): MatchAnswer {
  const dialled = negated(includesPort([info.ports(4)], port), (invert & INVERT_PORT) !== 0);
  return allOf([dialled, includesEveryPort([info.ports(0)])]);
}

function tcp(info: Structure, state: PacketState): MatchAnswer {
  const invert = info.u8(11);
  const flags = negated(hasTcpFlags(state, info.u8(9), info.u8(10)), (invert & INVERT_FLAGS) !== 0);
  return allOf([flags, hasPorts(info, state, invert), info.u8(8) === 0 ? true : undefined]);
}

/** What only looks at a packet, or changes something that no verdict depends on. */
const HARMLESS: ReadonlySet<string> = new Set(['LOG', 'NFLOG', 'TCPMSS', 'CHECKSUM', 'AUDIT']);

export function targetOfIptables(
  expression: Extract<Expression, { readonly kind: 'xt target' }>,
  state: PacketState,
): Effect {
  const info = new Structure(expression);
  if (HARMLESS.has(expression.name)) return undefined;
  switch (expression.name) {
    case 'REJECT':
      return { kind: 'verdict', verdict: { kind: 'reject' } };
    case 'MASQUERADE':
    case 'SNAT':
      return { kind: 'verdict', verdict: { kind: 'masquerade' } };
    case 'MARK':
      if (!info.isOf(2, 8)) return UNKNOWN;
      return { kind: 'mark', mark: ((state.mark & ~info.u32(4)) ^ info.u32(0)) >>> 0 };
    case 'DNAT':
      return info.isOf(2, 40) ? destination(info, state) : UNKNOWN;
    default:
      return UNKNOWN;
  }
}

const MAP_ADDRESS = 1;
const MAP_PORT = 2;

/** struct nf_nat_range2, where it is one address and at most one port. */
function destination(info: Structure, state: PacketState): Effect {
  const bytes = state.destination.includes(':') ? 16 : 4;
  const [first, last] = [4, 20].map((at) => info.bytes.subarray(at, at + bytes));
  const [port = 0, lastPort] = [36, 38].map((at) => viewOf(info.bytes).getUint16(at));
  const hasPort = (info.u32(0) & MAP_PORT) !== 0;
  if (!first || !last || Buffer.compare(first, last) !== 0 || (hasPort && port !== lastPort)) return UNKNOWN;
  const ip = (info.u32(0) & MAP_ADDRESS) === 0 ? state.destination : decodeIp(first);
  return { kind: 'verdict', verdict: { kind: 'dnat', ip, port: hasPort ? port : state.port } };
}
