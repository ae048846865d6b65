/** Sends packets through the tables of iptables: which rule matches, and what its target does. */
import { type Cidr, cidrContains, type Ip, parseIp } from '../../../model/ip.ts';
import type { Host, Packet } from '../../../plan/decide.ts';
import {
  type HookPoint,
  type RuleExit,
  type WalkVerdict,
  type WalkContext,
  type WalkOptions,
  walkPacket,
  type WalkedChain,
  type WalkResult,
  type Way,
} from '../../walk.ts';
import { ruleProtocol } from './names.ts';
import type { Tables } from './parse.ts';
import { printRule, probabilityBits } from './print.ts';
import type { ConntrackState, Match, Rule, Target } from './rule.ts';

export interface IptablesPacket extends Packet {
  /** Came in through a port of a bridge. */
  readonly viaBridge?: boolean;
}

export interface IptablesWalkOptions extends WalkOptions {
  /** Which recent-client lists hold the client; by default none. */
  readonly affinity?: (list: string) => boolean;
}

/** Deeper than any kernel goes: only a loop gets there. */
const DEEPEST_JUMP = 512;

/** Which tables a packet passes at a hook, one after the other. */
const TABLE_ORDER: Readonly<Record<HookPoint, readonly string[]>> = {
  prerouting: ['raw', 'mangle', 'nat'],
  input: ['mangle', 'filter', 'security', 'nat'],
  forward: ['mangle', 'filter', 'security'],
  output: ['raw', 'mangle', 'nat', 'filter', 'security'],
  postrouting: ['mangle', 'nat'],
};

/** An outcome's `learned` are the recent-client lists that the client was put on. */
export function walkIptables(
  tables: Tables,
  packet: IptablesPacket,
  host: Host,
  options: IptablesWalkOptions = {},
): WalkResult<string> {
  const { affinity = () => false } = options;
  const viaBridge = packet.viaBridge ?? false;
  return walkPacket<Rule, string>(
    {
      deepestJump: DEEPEST_JUMP,
      baseChains: (point) => {
        const chain = point.toUpperCase();
        return TABLE_ORDER[point].flatMap((table): readonly WalkedChain[] => {
          const found = tables.get(table)?.get(chain);
          if (!found) return [];
          const type = table === 'nat' ? 'nat' : 'filter';
          return [{ type, table, chain, policy: found.policy === 'DROP' ? 'drop' : 'accept' }];
        });
      },
      rulesOf: (table, chain) => tables.get(table)?.get(chain)?.rules,
      leave: (rule, way, context) => leave(rule, { way, context, affinity, viaBridge }),
      print: printRule,
    },
    packet,
    host,
    options,
  );
}

interface Place {
  readonly way: Way<string>;
  readonly context: WalkContext;
  readonly affinity: (list: string) => boolean;
  readonly viaBridge: boolean;
}

function leave(rule: Rule, place: Place): readonly RuleExit<string>[] {
  const { way, context } = place;
  const chance = chanceOf(rule, place);
  if (chance === 0) return [{ way, isMatch: false }];
  const lists = rule.matches.flatMap((match) => (match.kind === 'recentSet' ? [match.name] : []));
  const matched: RuleExit<string> = {
    way: {
      ...way,
      probability: way.probability * chance,
      mark: markAfter(rule.target, way.mark),
      learned: lists.length === 0 ? way.learned : [...way.learned, ...lists],
    },
    isMatch: true,
    verdict: verdictOf(rule.target, way, context),
  };
  if (chance === 1) return [matched];
  return [{ way: { ...way, probability: way.probability * (1 - chance) }, isMatch: false }, matched];
}

/** The probability that the rule matches: 0 or 1, or something between for a random choice. */
function chanceOf(rule: Rule, place: Place): number {
  let chance = 1;
  for (const match of rule.matches) {
    if (match.kind === 'statistic') chance *= Math.min(1, probabilityBits(match.probability) / 2 ** 31);
    else if (!matches(match, place)) return 0;
  }
  return chance;
}

function matches(match: Exclude<Match, { kind: 'statistic' }>, place: Place): boolean {
  const { way, context } = place;
  switch (match.kind) {
    case 'comment':
    case 'nfacct':
    case 'recentSet':
      return true;
    case 'protocol':
      return match.protocol === ruleProtocol(way.protocol);
    case 'source':
    case 'destination':
      return isWithin(match.cidr, way[match.kind]) !== match.not;
    case 'destinationPort':
      return match.port === way.port;
    case 'inInterface':
      return isInterface(match.name, way.inInterface) !== match.not;
    case 'addressType':
      return context.isLocal(match.side === 'src' ? way.source : way.destination) !== match.not;
    case 'conntrackState':
      return match.states.some((state) => hasState(way, state)) !== match.not;
    case 'mark':
      return ((way.mark & match.mask) >>> 0 === match.value >>> 0) !== match.not;
    case 'recentCheck':
      return place.affinity(match.name);
    case 'physdevIsIn':
      return place.viaBridge !== match.not;
    case 'set':
    case 'virtualServer':
      context.note(`not evaluated, taken as no match: ${printRule({ matches: [match], target: undefined })}`);
      return false;
    case 'other':
      context.note(`not evaluated, taken as no match: ${match.args.join(' ')}`);
      return false;
    default:
      return match satisfies never;
  }
}

function isWithin(cidr: Cidr | Ip, ip: Ip): boolean {
  return cidr.includes('/') ? cidrContains(cidr as Cidr, ip) : cidr === ip;
}

function isInterface(pattern: string, name: string): boolean {
  return pattern.endsWith('+') ? name.startsWith(pattern.slice(0, -1)) : pattern === name;
}

function hasState(way: Way<string>, state: ConntrackState): boolean {
  return state === 'NEW' || (state === 'DNAT' && way.isRewritten);
}

function markAfter(target: Target | undefined, mark: number): number {
  if (target?.kind !== 'mark') return mark;
  return (target.operation === 'xor' ? mark ^ target.value : mark | target.value) >>> 0;
}

function verdictOf(
  target: Target | undefined,
  way: Way<string>,
  { note }: WalkContext,
): WalkVerdict | undefined {
  if (!target) return undefined;
  switch (target.kind) {
    case 'mark':
      return undefined;
    case 'dnat':
      return dnatTo(target.to, way, note);
    case 'other': {
      const [option, chain] = target.args;
      if (option === '-g' && chain !== undefined) return { kind: 'goto', chain };
      note(`not evaluated, taken as passing: ${target.args.join(' ')}`);
      return undefined;
    }
    case 'jump':
      return { kind: 'jump', chain: target.chain };
    default:
      return { kind: target.kind };
  }
}

function dnatTo(to: string, way: Way<string>, note: (text: string) => void): WalkVerdict {
  const whole = parseIp(to);
  if (whole !== undefined) return { kind: 'dnat', ip: whole, port: way.port };
  const [, bracketed, plain, port] = /^(?:\[(.*)\]|(.*)):(\d+)$/.exec(to) ?? [];
  const ip = parseIp(bracketed ?? plain ?? '');
  if (ip !== undefined) return { kind: 'dnat', ip, port: Number(port) };
  note(`not evaluated, not one address and port: ${to}`);
  return { kind: 'accept' };
}
