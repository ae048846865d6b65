/** Does a rule match a packet where it is now? */
import { type Cidr, cidrContains, type Ip, isLoopback } from '../../../model/ip.ts';
import { printRule, probabilityBits } from './print.ts';
import type { ConntrackState, Match, Rule } from './rule.ts';

/** The first packet of a connection, somewhere on its way. */
export interface InFlight {
  readonly source: Ip;
  readonly destination: Ip;
  readonly protocol: 'tcp' | 'udp' | 'sctp';
  readonly port: number;
  /** Empty where a packet has no such interface: in OUTPUT and POSTROUTING. */
  readonly inInterface: string;
  readonly viaBridge: boolean;
  readonly mark: number;
  readonly rewritten: boolean;
}

export interface World {
  readonly isLocal: (ip: Ip) => boolean;
  /** Is the client in this list of recent clients? */
  readonly affinity: (list: string) => boolean;
  readonly note: (text: string) => void;
}

export function localAddresses(addresses: readonly Ip[]): (ip: Ip) => boolean {
  const known = new Set<string>(addresses);
  return (ip) => isLoopback(ip) || known.has(ip);
}

/** The probability that the rule matches: 0 or 1, or something between for a random choice. */
export function chanceOf(rule: Rule, packet: InFlight, world: World): number {
  let chance = 1;
  for (const match of rule.matches) {
    chance *= chanceOfMatch(match, packet, world);
    if (chance === 0) return 0;
  }
  return chance;
}

function chanceOfMatch(match: Match, packet: InFlight, world: World): number {
  if (match.kind === 'statistic') return Math.min(1, probabilityBits(match.probability) / 2 ** 31);
  return matches(match, packet, world) ? 1 : 0;
}

function matches(match: Exclude<Match, { kind: 'statistic' }>, packet: InFlight, world: World): boolean {
  switch (match.kind) {
    case 'comment':
    case 'nfacct':
    case 'recentSet':
      return true;
    case 'protocol':
      return match.protocol === packet.protocol;
    case 'source':
      return isWithin(match.cidr, packet.source) !== match.not;
    case 'destination':
      return isWithin(match.cidr, packet.destination) !== match.not;
    case 'destinationPort':
      return match.port === packet.port;
    case 'inInterface':
      return isInterface(match.name, packet.inInterface) !== match.not;
    case 'addressType':
      return world.isLocal(match.side === 'src' ? packet.source : packet.destination) !== match.not;
    case 'conntrackState':
      return match.states.some((state) => hasState(packet, state)) !== match.not;
    case 'mark':
      return ((packet.mark & match.mask) >>> 0 === match.value >>> 0) !== match.not;
    case 'recentCheck':
      return world.affinity(match.name);
    case 'physdevIsIn':
      return packet.viaBridge !== match.not;
    case 'set':
    case 'virtualServer':
      world.note(`not evaluated, taken as no match: ${printRule({ matches: [match], target: undefined })}`);
      return false;
    case 'other':
      world.note(`not evaluated, taken as no match: ${match.args.join(' ')}`);
      return false;
    default:
      return match satisfies never;
  }
}

function isWithin(cidr: Cidr | Ip, ip: Ip): boolean {
  const slash = cidr.indexOf('/');
  if (slash < 0) return cidr === ip;
  return cidrContains(cidr as Cidr, ip);
}

function isInterface(pattern: string, name: string): boolean {
  return pattern.endsWith('+') ? name.startsWith(pattern.slice(0, -1)) : pattern === name;
}

function hasState(packet: InFlight, state: ConntrackState): boolean {
  return state === 'NEW' || (state === 'DNAT' && packet.rewritten);
}
