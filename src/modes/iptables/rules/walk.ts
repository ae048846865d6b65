/** Sends packets through the tables of iptables: which rule matches, and what its target does. */
import { type Cidr, cidrContains, familyOf, type Ip, isLoopback } from '../../../model/ip.ts';
import type { Host, Packet } from '../../../plan/decide.ts';
import {
  type Balanced,
  type RuleExit,
  type RuleExits,
  type TraceStep,
  type WalkContext,
  type WalkOptions,
  walkPacket,
  type WalkedChain,
  type WalkSteps,
  type Way,
} from '../../walk.ts';
import type { HookPoint } from '../../path.ts';
import { ruleProtocol } from './names.ts';
import { type MatchAnswer, answerOther, hasState, isInterface } from './otherMatch.ts';
import { dnatTo, effectOfOther, isPassing, type TargetEffect } from './otherTarget.ts';
import { isForeignRule } from './ownership.ts';
import type { ParsedRule } from './parse.ts';
import { printRule, probabilityBits } from './print.ts';
import type { Match, Rule } from './rule.ts';

export interface IptablesPacket extends Packet {
  /** Came in through a port of a bridge. */
  readonly viaBridge?: boolean;
}

export interface IptablesWalkOptions extends WalkOptions {
  /** Which recent-client lists hold the client; by default none. */
  readonly affinity?: (list: string) => boolean;
  /** Whether a set has the packet; `undefined`, which is the default: nobody knows. */
  readonly inSet?: (match: SetMatch, way: Way<string>) => MatchAnswer;
  /** What it was looked up by: `KUBE-CLUSTER-IP { 10.96.0.1,tcp:80 }`. */
  readonly foundInSet?: (match: SetMatch, way: Way<string>) => string | undefined;
  /** Whether IPVS sends it on for this virtual server; the same. */
  readonly isVirtual?: (match: Extract<Match, { kind: 'virtualServer' }>, way: Way<string>) => MatchAnswer;
  /** IPVS, where it is in the packet's way. */
  readonly balance?: (way: Way<string>, context: WalkContext) => readonly Balanced<string>[];
  /** Addresses of the node besides the host's. */
  readonly isBound?: (ip: Ip) => boolean;
}

export type SetMatch = Extract<Match, { kind: 'set' }>;

/** A rule as a kernel has it. */
export interface WalkedRule extends ParsedRule {
  /** As iptables prints it; unset: as we would. */
  readonly text?: string;
  /** Its place in the chain, where the chain is not walked whole. */
  readonly index?: number;
}

/** Where the rules come from. */
export interface WalkedTables {
  /** `undefined`: the table has no such chain. */
  base(table: string, chain: string): BuiltInChain | undefined;
  /** All rules of a chain, or those that this packet may match. */
  rules(table: string, chain: string, way: Way<string>): readonly WalkedRule[] | undefined;
  /** Of programs that do not use iptables. */
  readonly others?: OtherChains | undefined;
  /** By which interface the packet leaves, where that is known. */
  readonly outInterface?: ((way: Way<string>) => string | undefined) | undefined;
}

interface PlacedChain {
  readonly chain: WalkedChain;
  /** Its priority. */
  readonly at: number;
}

/** Chains of nf_tables. The names of their tables have a family before them: `inet firewalld`. */
export interface OtherChains {
  baseChains(point: HookPoint): readonly PlacedChain[];
  rules(table: string, chain: string): readonly OtherRule[] | undefined;
}

export interface OtherRule {
  leave(way: Way<string>, context: WalkContext): RuleExits<string>;
  print(): string;
  details(): Pick<TraceStep, 'packets' | 'isForeign'>;
}

export interface BuiltInChain {
  readonly policy?: string | undefined;
  readonly policyPackets?: number | undefined;
}

/** Deeper than any kernel goes: only a loop gets there. */
const DEEPEST_JUMP = 512;

/** Random choices that come back double the ways of a packet; nobody has that many rules on the way of one. */
const MOST_STEPS = 200_000;

/** Which tables a packet passes at a hook, where IPVS stands among them, and by which priority (linux/netfilter_ipv4.h). */
const TABLE_ORDER: Readonly<Record<HookPoint, readonly (readonly [table: string, at: number])[]>> = {
  prerouting: [
    ['raw', -300],
    ['mangle', -150],
    ['nat', -100],
  ],
  input: [
    ['mangle', -150],
    ['filter', 0],
    ['security', 50],
    ['ipvs', 99],
    ['nat', 100],
  ],
  forward: [
    ['mangle', -150],
    ['filter', 0],
    ['security', 50],
  ],
  output: [
    ['raw', -300],
    ['mangle', -150],
    ['nat', -100],
    ['ipvs', -99],
    ['filter', 0],
    ['security', 50],
  ],
  postrouting: [
    ['mangle', -150],
    ['nat', 100],
  ],
};

/** An outcome's `learned` are the recent-client lists that the client was put on. */
export function walkTables(
  tables: WalkedTables,
  packet: IptablesPacket,
  host: Host,
  options: IptablesWalkOptions = {},
): WalkSteps<string> {
  const { balance, isBound } = options;
  const { outInterface = () => undefined } = tables;
  const { viaBridge = false } = packet;
  const localIp: Place['localIp'] = (family) =>
    host.addresses.find((ip) => familyOf(ip) === family && !isLoopback(ip));
  const placeAt = (way: Way<string>, context: WalkContext): Place => ({
    way,
    context,
    options,
    viaBridge,
    outInterface,
    localIp,
  });
  let steps = 0;
  return walkPacket<WalkedRule | OtherRule, string>(
    {
      deepestJump: DEEPEST_JUMP,
      baseChains: (point) => {
        const chain = point.toUpperCase();
        const own = TABLE_ORDER[point].flatMap(([table, at]): readonly PlacedChain[] => {
          if (table === 'ipvs')
            return balance ? [{ at, chain: { type: table, table, chain, policy: 'accept' } }] : [];
          const found = tables.base(table, chain);
          return found ? [{ at, chain: baseChain(table, chain, found) }] : [];
        });
        const all = [...own, ...(tables.others?.baseChains(point) ?? [])];
        return all.sort((a, b) => a.at - b.at).map((each) => each.chain);
      },
      rulesOf: (table, chain, way) => {
        if (steps >= MOST_STEPS) return [];
        return table.includes(' ') ? tables.others?.rules(table, chain) : tables.rules(table, chain, way);
      },
      leave: (rule, way, context) => {
        if (steps++ < MOST_STEPS)
          return 'leave' in rule ? rule.leave(way, context) : leave(rule, placeAt(way, context));
        context.note(`not evaluated: what comes after ${MOST_STEPS} rules`);
        return [{ way, isMatch: false }];
      },
      print: (rule) => ('leave' in rule ? rule.print() : (rule.text ?? printRule(rule))),
      detailsOf: (rule, table, chain) => ('leave' in rule ? rule.details() : detailsOf(rule, table, chain)),
      ...(balance && { balance }),
      ...(isBound && { isBound }),
    },
    packet,
    host,
    options,
  );
}

function detailsOf(
  rule: WalkedRule,
  table: string,
  chain: string,
): Pick<TraceStep, 'packets' | 'isForeign'> & Partial<Pick<TraceStep, 'ruleIndex'>> {
  return {
    ...(rule.counters && { packets: rule.counters.packets }),
    ...(isForeignRule(rule, table, chain) && { isForeign: true }),
    ...(rule.index !== undefined && { ruleIndex: rule.index }),
  };
}

/** A policy other than ACCEPT is another program's. */
function baseChain(table: string, chain: string, { policy, policyPackets }: BuiltInChain): WalkedChain {
  return {
    type: table === 'nat' ? 'nat' : 'filter',
    hookName: table,
    table,
    chain,
    policy: policy === 'DROP' ? 'drop' : 'accept',
    policyPackets,
    isForeign: true,
  };
}

interface Place {
  readonly way: Way<string>;
  readonly context: WalkContext;
  readonly options: IptablesWalkOptions;
  readonly viaBridge: boolean;
  readonly outInterface: (way: Way<string>) => string | undefined;
  readonly localIp: Parameters<typeof effectOfOther>[2];
}

function leave(rule: WalkedRule, place: Place): readonly RuleExit<string>[] {
  const { way, context } = place;
  const chance = chanceOf(rule, place);
  if (chance === 0) return [{ way, isMatch: false }];
  const effect = effectOf(rule, place);
  if (effect.note !== undefined) context.note(effect.note);
  const matched: RuleExit<string> = {
    way: wayAfter(rule, way, chance, effect),
    isMatch: true,
    verdict: effect.verdict,
    found: () => foundBy(rule, place),
  };
  if (chance === 1) return [matched];
  return [{ way: { ...way, probability: way.probability * (1 - chance) }, isMatch: false }, matched];
}

/** The same one where nothing changes: of most rules that match, a jump is all. */
function wayAfter(rule: WalkedRule, way: Way<string>, chance: number, effect: TargetEffect): Way<string> {
  const { mark = way.mark, isUntracked = way.isUntracked } = effect;
  const isPlain = rule.matches.every(({ kind }) => kind !== 'recentSet' && kind !== 'recentCheck');
  if (isPlain && chance === 1 && mark === way.mark && isUntracked === way.isUntracked) return way;
  const lists = rule.matches.flatMap((match) => (match.kind === 'recentSet' ? [match.name] : []));
  return {
    ...way,
    probability: way.probability * chance,
    mark,
    isUntracked,
    byAffinity: way.byAffinity || rule.matches.some(({ kind }) => kind === 'recentCheck'),
    learned: lists.length === 0 ? way.learned : [...way.learned, ...lists],
  };
}

/** The probability that the rule matches: 0 or 1, or something between for a random choice. */
function chanceOf(rule: WalkedRule, place: Place): number {
  let chance = 1;
  const unknown: Match[] = [];
  for (const match of rule.matches) {
    if (match.kind === 'statistic') {
      chance *= Math.min(1, probabilityBits(match.probability) / 2 ** 31);
      continue;
    }
    const answer = answerOf(match, place);
    if (answer === false) return 0;
    if (answer === undefined) unknown.push(match);
  }
  if (unknown.length === 0) return chance;
  if (!decidesNothing(rule)) {
    const text = unknown.map((match) => printMatch(match)).join(' ');
    place.context.note(`not evaluated, taken as no match: ${text} (in: ${rule.text ?? printRule(rule)})`);
  }
  return 0;
}

/** Whether it matches or not, the packet goes the same way. */
function decidesNothing({ target }: Rule): boolean {
  return target === undefined || (target.kind === 'other' && isPassing(target.args));
}

function printMatch(match: Match): string {
  return match.kind === 'other' ? match.args.join(' ') : printRule({ matches: [match], target: undefined });
}

function answerOf(match: Exclude<Match, { kind: 'statistic' }>, place: Place): MatchAnswer {
  const { way, context, options } = place;
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
      return options.affinity?.(match.name) ?? false;
    case 'physdevIsIn':
      return place.viaBridge !== match.not;
    case 'set':
      return options.inSet?.(match, way);
    case 'virtualServer':
      return options.isVirtual?.(match, way);
    case 'other':
      return answerOther(match.args, { way, context, outInterface: () => place.outInterface(way) });
    default:
      return match satisfies never;
  }
}

function isWithin(cidr: Cidr | Ip, ip: Ip): boolean {
  // As a save prints one address. A service with 5,000 endpoints has as many to compare with.
  if (cidr.endsWith('/32') && cidr.includes('.')) return cidr.length === ip.length + 3 && cidr.startsWith(ip);
  return cidr.includes('/') ? cidrContains(cidr as Cidr, ip) : cidr === ip;
}

function effectOf({ target }: Rule, { way, localIp }: Place): TargetEffect {
  if (!target) return {};
  switch (target.kind) {
    case 'mark': {
      const { operation, value } = target;
      return { mark: (operation === 'xor' ? way.mark ^ value : way.mark | value) >>> 0 };
    }
    case 'dnat':
      return dnatTo(target.to, way);
    case 'other':
      return effectOfOther(target.args, way, localIp);
    case 'jump':
      return { verdict: { kind: 'jump', chain: target.chain } };
    default:
      return { verdict: { kind: target.kind } };
  }
}

function foundBy({ matches }: WalkedRule, { way, options }: Place): readonly string[] {
  return matches.flatMap((match) => (match.kind === 'set' ? (options.foundInSet?.(match, way) ?? []) : []));
}
