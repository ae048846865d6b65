/**
 * What the matches of iptables and the expressions of nf_tables ask about the first packet of a connection. An answer is
 * `undefined` where it takes more than the packet to know.
 */
import { type Ip, isLoopback } from '../model/ip.ts';
import type { PacketState, WalkContext } from './kernelRules.ts';

export type MatchAnswer = boolean | undefined;

export function negated(answer: MatchAnswer, not: boolean): MatchAnswer {
  return answer === undefined ? undefined : answer !== not;
}

/** All of them match. */
export function allOf(answers: Iterable<MatchAnswer>): MatchAnswer {
  let all: MatchAnswer = true;
  for (const answer of answers) {
    if (answer === false) return false;
    if (answer === undefined) all = undefined;
  }
  return all;
}

/** XT_CONNTRACK_STATE_* of linux/netfilter/xt_conntrack.h; the first four are also those of `ct state`. */
export const CONNTRACK_STATES: Readonly<Record<string, number>> = {
  INVALID: 1,
  ESTABLISHED: 2,
  RELATED: 4,
  NEW: 8,
  SNAT: 64,
  DNAT: 128,
  UNTRACKED: 256,
};

export function conntrackStates({
  isUntracked,
  isBeforeConntrack,
  isRewritten,
  masqueraded,
}: PacketState): number {
  if (isUntracked) return 256;
  if (isBeforeConntrack) return 1;
  return 8 | (isRewritten ? 128 : 0) | (masqueraded ? 64 : 0);
}

/** RTN_* of linux/rtnetlink.h */
export const ADDRESS_TYPES = [
  'UNSPEC',
  'UNICAST',
  'LOCAL',
  'BROADCAST',
  'ANYCAST',
  'MULTICAST',
  'BLACKHOLE',
  'UNREACHABLE',
  'PROHIBIT',
] as const;

const MULTICAST = /^(?:22[4-9]|23\d)\.|^ff[0-9a-f]{2}:/;

/** `undefined`: routes say what it is. */
export function addressType(ip: Ip, isLocal: (ip: Ip) => boolean): number | undefined {
  if (isLoopback(ip) || isLocal(ip)) return ADDRESS_TYPES.indexOf('LOCAL');
  if (ip === '255.255.255.255') return ADDRESS_TYPES.indexOf('BROADCAST');
  return MULTICAST.test(ip) ? ADDRESS_TYPES.indexOf('MULTICAST') : undefined;
}

const DECIDED_WITHOUT_ROUTES =
  (1 << ADDRESS_TYPES.indexOf('LOCAL')) | (1 << ADDRESS_TYPES.indexOf('MULTICAST'));

/** `types`: a bit for each. */
export function hasAddressType(types: number, ip: Ip, { isLocal }: WalkContext): MatchAnswer {
  const type = addressType(ip, isLocal);
  if (type !== undefined) return (types & (1 << type)) !== 0;
  return (types & ~DECIDED_WITHOUT_ROUTES) === 0 ? false : undefined;
}

/** As in its header: FIN, SYN, RST, PSH, ACK, URG. A connection begins with SYN and no other flag. */
export const TCP_FLAGS = ['FIN', 'SYN', 'RST', 'PSH', 'ACK', 'URG'] as const;
export const SYN = 2;

export function hasTcpFlags({ protocol }: PacketState, mask: number, flags: number): boolean {
  return protocol === 'TCP' && (SYN & mask) === flags;
}

export type PortRange = readonly [first: number, last: number];

export function includesPort(ranges: readonly PortRange[], port: number): boolean {
  return ranges.some(([first, last]) => first <= port && port <= last);
}

/** The client's own port is not known. */
export function includesEveryPort(ranges: readonly PortRange[]): MatchAnswer {
  return ranges.some(([first, last]) => first <= 1 && last === 65_535) || undefined;
}

/** The name of the interface by which it leaves; empty before its routing. A packet to the node itself leaves by lo. */
export function outInterface(state: PacketState, { isLocal, place }: WalkContext): string | undefined {
  if (state.point === 'prerouting' || state.point === 'input') return '';
  return isLocal(state.destination) ? 'lo' : place.outInterface?.(state);
}
