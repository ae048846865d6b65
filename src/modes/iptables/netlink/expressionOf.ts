/** Matches and targets of which a table has few, or always the same: as expressions. */
import type { Family } from '../../../model/ip.ts';
import { PROTOCOL_NUMBERS, writeIp } from '../../../netlink/inet.ts';
import type { Expression } from '../../../netlink/nftables/expressions.ts';
import {
  ADDRTYPE_INVERT_DESTINATION,
  ADDRTYPE_INVERT_SOURCE,
  ADDRTYPE_LOCAL,
  CONNTRACK_STATE,
  CONNTRACK_STATES,
  IPVS_VIRTUAL_SERVER,
  NF_NAT_RANGE_PROTO_RANDOM_FULLY,
  PHYSDEV_IS_IN,
  PORT_UNREACHABLE,
  XT_MATCHES,
  XT_TARGETS,
} from '../../../netlink/xtables.ts';
import type { Match, Target } from '../rules/rule.ts';
import type { IptablesDialect } from './dialect.ts';
import { comparison, REGISTER, xtMatch, xtTarget } from './templates.ts';

type OtherKind =
  | 'comment'
  | 'protocol'
  | 'source'
  | 'destination'
  | 'destinationPort'
  | 'inInterface'
  | 'other';
type MatchKind = Exclude<Match['kind'], OtherKind | 'statistic' | 'recentSet' | 'recentCheck'>;
export type PlainMatch = Extract<Match, { readonly kind: MatchKind }>;
export type PlainTarget = Exclude<Target, { readonly kind: 'jump' | 'dnat' | 'other' }>;

/** The kernel's number of a set. */
export type SetIndex = (name: string) => number | undefined;

/** `undefined` for what `iptables` would not take either, or a set that is not known. */
export function matchExpressions(
  match: PlainMatch,
  setIndex: SetIndex,
  { comparesNatively }: IptablesDialect,
): readonly Expression[] | undefined {
  switch (match.kind) {
    case 'addressType': {
      const { side, not } = match;
      const isSource = side === 'src';
      const inversion = isSource ? ADDRTYPE_INVERT_SOURCE : ADDRTYPE_INVERT_DESTINATION;
      const info = XT_MATCHES.addrtype.encode({
        [isSource ? 'source' : 'destination']: ADDRTYPE_LOCAL,
        flags: not ? inversion : 0,
      });
      return [xtMatch(XT_MATCHES.addrtype, info)];
    }
    case 'conntrackState': {
      const states = match.states.reduce((bits, state) => bits | CONNTRACK_STATES[state], 0);
      const invert = match.not ? CONNTRACK_STATE : 0;
      const info = XT_MATCHES.conntrack.encode({ asked: CONNTRACK_STATE, invert, states });
      return [xtMatch(XT_MATCHES.conntrack, info)];
    }
    case 'mark':
      return comparesNatively ? markExpressions(match) : [markStructure(match)];
    case 'physdevIsIn': {
      const info = XT_MATCHES.physdev.encode({
        asked: PHYSDEV_IS_IN,
        invert: match.not ? PHYSDEV_IS_IN : 0,
      });
      return [xtMatch(XT_MATCHES.physdev, info)];
    }
    case 'nfacct': {
      if (match.name.length > NFACCT_NAME_LENGTH) return undefined;
      return [xtMatch(XT_MATCHES.nfacct, XT_MATCHES.nfacct.encode({ name: match.name }))];
    }
    case 'set': {
      const index = setIndex(match.name);
      if (index === undefined) return undefined;
      const flags = match.sides.reduce((bits, side, at) => (side === 'src' ? bits | (2 << at) : bits), 0);
      const info = XT_MATCHES.set.encode({ index, sides: match.sides.length, flags });
      return [xtMatch(XT_MATCHES.set, info)];
    }
    case 'virtualServer': {
      const address = new Uint8Array(16);
      writeIp(match.address, address, 0);
      const protocol = PROTOCOL_NUMBERS[upper(match.protocol)];
      const info = XT_MATCHES.ipvs.encode({
        address,
        port: match.port,
        protocol,
        asked: IPVS_VIRTUAL_SERVER,
      });
      return [xtMatch(XT_MATCHES.ipvs, info)];
    }
  }
}

/** NFACCT_NAME_MAX, less the closing zero byte. */
const NFACCT_NAME_LENGTH = 31;

function upper(protocol: 'tcp' | 'udp' | 'sctp'): keyof typeof PROTOCOL_NUMBERS {
  return ({ tcp: 'TCP', udp: 'UDP', sctp: 'SCTP' } as const)[protocol];
}

const ALL_BITS = 0xffff_ffff;

type MarkMatch = Extract<Match, { readonly kind: 'mark' }>;

function markStructure({ value, mask, not }: MarkMatch): Expression {
  const info = XT_MATCHES.mark.encode({ mark: value, mask, isInverted: not ? 1 : 0 });
  return xtMatch(XT_MATCHES.mark, info);
}

function markExpressions({ value, mask, not }: MarkMatch): readonly Expression[] {
  const load: Expression = { kind: 'meta', key: 'mark', into: REGISTER };
  const compared = comparison(u32Bytes(value), not);
  if (mask >>> 0 === ALL_BITS) return [load, compared];
  const [from, into, xor] = [REGISTER, REGISTER, new Uint8Array(4)];
  return [load, { kind: 'bitwise', from, into, mask: u32Bytes(mask), xor }, compared];
}

/** In the machine's byte order. */
function u32Bytes(value: number): Uint8Array {
  return new Uint8Array(Uint32Array.of(value).buffer);
}

export function targetExpression(target: PlainTarget, family: Family): Expression {
  switch (target.kind) {
    case 'accept':
    case 'drop':
    case 'return':
      return { kind: 'verdict', verdict: target.kind };
    case 'reject':
      return xtTarget(XT_TARGETS.REJECT, XT_TARGETS.REJECT.encode({ with: PORT_UNREACHABLE[family] }));
    case 'mark': {
      const { operation, value: mark } = target;
      const info = XT_TARGETS.MARK.encode({ mark, mask: operation === 'xor' ? 0 : mark });
      return xtTarget(XT_TARGETS.MARK, info);
    }
    case 'masquerade': {
      const structure = family === 'IPv4' ? XT_TARGETS.MASQUERADE : XT_TARGETS.MASQUERADE6;
      const flags = target.randomFully ? NF_NAT_RANGE_PROTO_RANDOM_FULLY : 0;
      return xtTarget(structure, structure.encode({ flags }));
    }
  }
}
