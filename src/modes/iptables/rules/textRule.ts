/**
 * A rule of iptables as text, ours or another program's, and what it does with a packet. Matches that take more than the
 * packet to know (rates, sets, the client's port, routes that cannot be asked for) are noted and taken as no match.
 */
import { type Cidr, cidrContains, type Ip, parseBytes, parseCidr, parseIp } from '../../../model/ip.ts';
import {
  ADDRESS_TYPES,
  allOf,
  CONNTRACK_STATES,
  conntrackStates,
  hasAddressType,
  hasTcpFlags,
  includesEveryPort,
  includesPort,
  type MatchAnswer,
  negated,
  outInterface,
  type PortRange,
  TCP_FLAGS,
} from '../../matches.ts';
import type { PacketState, RuleResult, Steps, WalkContext, WalkRule } from '../../kernelRules.ts';
import { CHAINS, FIREWALL_COMMENTS, IPVS_CHAINS, isServiceChain } from './names.ts';
import type { Table } from './rule.ts';
import { effectOf, isChain, isPassing } from './textTarget.ts';
import {
  keyOf,
  markIn,
  type Option,
  type ParsedRule,
  parseText,
  probabilityBits,
  PROTOCOL_NUMBERS,
} from './words.ts';

interface RulePlace {
  readonly table: string;
  readonly name: string;
}

export class TextRule implements WalkRule {
  readonly text: string;
  readonly index: number;
  readonly packets: number | undefined;
  /** For a chain that iptables cannot print: only where it jumps to is known. */
  readonly isOpaque: boolean;
  readonly #chain: RulePlace;
  #parsed: ParsedRule | undefined;

  constructor(text: string, chain: RulePlace, index = 0, packets?: number, isOpaque = false) {
    this.text = text;
    this.#chain = chain;
    this.index = index;
    this.packets = packets;
    this.isOpaque = isOpaque;
  }

  print(): string {
    return this.text;
  }

  get key(): string {
    return keyOf(this.#rule);
  }

  /** The chain that it jumps or goes to. */
  get jump(): string | undefined {
    const [option, name = '', ...rest] = this.#rule.target;
    if (option === '-g') return name;
    return option === '-j' && rest.length === 0 && isChain(name) ? name : undefined;
  }

  get options(): readonly Option[] {
    return this.#rule.options;
  }

  get target(): readonly string[] {
    return this.#rule.target;
  }

  get #rule(): ParsedRule {
    return (this.#parsed ??= parseText(this.text));
  }

  /** kube-proxy's chains have the same names and count as ours. */
  get isForeign(): boolean {
    const { table, name } = this.#chain;
    if (table !== 'nat' && table !== 'filter') return true;
    if (BUILT_IN.has(name)) return !isOwnChain(this.#rule.target[1] ?? '');
    // kubelet has rules in it too.
    if (name === CHAINS.firewall) return !FIREWALL_COMMENTS.some((text) => this.text.includes(text));
    return !isOwnChain(name);
  }

  *evaluate(state: PacketState, context: WalkContext): Steps<readonly RuleResult[]> {
    const { inSet, remembers = () => false } = context.place;
    let chance = 1;
    const unknown: Option[] = [];
    const found: string[] = [];
    const learned: { name: string }[] = [];
    let byAffinity = false;
    for (const option of this.#rule.options) {
      const { module, name, values } = option;
      const [value = '', sides = ''] = values;
      let answer: MatchAnswer;
      if (name === '--probability') {
        const probability = Math.min(1, probabilityBits(value) / 2 ** 31);
        chance *= option.not ? 1 - probability : probability;
        continue;
      }
      if (name === '--match-set' && inSet) {
        const { isMember, entry } = yield* inSet(value, sides.split(','), state);
        answer = isMember;
        if (entry !== undefined) found.push(entry);
      } else if (module === 'recent' && name === '--rcheck') {
        answer = remembers(this.#list);
        byAffinity = answer !== option.not;
      } else answer = answerOption(option, state, context);
      answer = negated(answer, option.not);
      if (answer === false) return [{ state, isMatch: false }];
      if (answer === undefined) unknown.push(option);
      if (module === 'recent' && name === '--set') learned.push({ name: this.#list });
    }
    const { target } = this.#rule;
    if (unknown.length > 0) {
      if (target.length > 0 && !isPassing(target)) {
        const text = unknown.map(printOption).join(' ');
        context.note(`not evaluated, taken as no match: ${text} (in: ${this.text})`);
      }
      return [{ state, isMatch: false }];
    }
    const {
      verdict,
      mark = state.mark,
      isUntracked = state.isUntracked,
      note,
    } = effectOf(target, state, context);
    if (note !== undefined) context.note(note);
    const matched: RuleResult = {
      state: {
        ...state,
        probability: state.probability * chance,
        mark,
        isUntracked,
        byAffinity: state.byAffinity || byAffinity,
        learned: learned.length === 0 ? state.learned : [...state.learned, ...learned],
      },
      isMatch: true,
      verdict,
      found: () => found,
    };
    if (chance === 1) return [matched];
    if (chance === 0) return [{ state, isMatch: false }];
    return [{ state: { ...state, probability: state.probability * (1 - chance) }, isMatch: false }, matched];
  }

  /** The recent list that it checks or puts the client on. */
  get #list(): string {
    return this.#rule.options.find(({ name }) => name === '--name')?.values[0] ?? '';
  }
}

export interface ReadChain {
  readonly rules: readonly TextRule[];
  /** Its rules were those that are planned, and are not kept. */
  readonly isAsPlanned?: boolean;
}

export type TableChains = ReadonlyMap<string, ReadChain>;
/** A kernel's rules of one family. */
export type Tables = ReadonlyMap<Table, TableChains>;

const BUILT_IN: ReadonlySet<string> = new Set(['PREROUTING', 'INPUT', 'FORWARD', 'OUTPUT', 'POSTROUTING']);
const FIXED: ReadonlySet<string> = new Set([...Object.values(CHAINS), ...Object.values(IPVS_CHAINS)]);

function isOwnChain(chain: string): boolean {
  return FIXED.has(chain) || isServiceChain(chain);
}

/** Of matches alone: `-m conntrack --ctstate NEW`. */
export function answerText(text: string, state: PacketState, context: WalkContext): MatchAnswer {
  return allOf(
    parseText(text).options.map((option) => negated(answerOption(option, state, context), option.not)),
  );
}

function printOption({ module, not, name, values }: Option): string {
  return [...(module === '' ? [] : ['-m', module]), ...(not ? ['!'] : []), name, ...values].join(' ');
}

/** Modules that say nothing by themselves, or whose options say all. */
const KNOWN_MODULES: ReadonlySet<string> = new Set(
  'addrtype comment conntrack iprange ipvs mark multiport nfacct physdev recent set state statistic tcp udp sctp'.split(
    ' ',
  ),
);

function answerOption(
  { module, name, values: [value = '', second = ''] }: Option,
  state: PacketState,
  context: WalkContext,
): MatchAnswer {
  switch (name) {
    case '-m':
      return KNOWN_MODULES.has(value) || undefined;
    case '-s':
      return isWithin(value, state.source);
    case '-d':
      return isWithin(value, state.destination);
    case '-i':
      return isInterface(value, state.inInterface);
    case '-o': {
      if (value === '+') return true;
      const out = outInterface(state, context);
      return out === undefined ? undefined : isInterface(value, out);
    }
    case '-p':
      return value === 'all' || value === '0' || isProtocol(value, state);
    case '-f': // the second fragment of a packet, and those after it
      return false;
    case '--dport':
      return includesPort(portsIn(value), state.port);
    case '--sport':
      return includesEveryPort(portsIn(value));
    case '--tcp-flags':
      return hasTcpFlags(state, flagsIn(value), flagsIn(second));
    case '--syn':
      return state.protocol === 'TCP';
  }
  switch (`${module} ${name}`) {
    case 'comment --comment':
    case 'nfacct --nfacct-name':
    case 'recent --set':
    case 'recent --name':
    case 'recent --seconds':
    case 'recent --reap':
    case 'recent --rsource':
      return true;
    case 'recent --mask':
      return value === '255.255.255.255' || /^ffff(?::ffff){7}$/.test(value) || undefined;
    case 'statistic --mode':
      return value === 'random' || undefined;
    case 'multiport --dports':
      return includesPort(portsIn(value), state.port);
    case 'multiport --sports':
      return includesEveryPort(portsIn(value));
    case 'multiport --ports':
      return includesPort(portsIn(value), state.port) || undefined;
    case 'state --state':
    case 'conntrack --ctstate':
      return (bitsIn(value, (word) => CONNTRACK_STATES[word] ?? 0) & conntrackStates(state)) !== 0;
    case 'conntrack --ctorigsrc':
      return isWithin(value, state.original.source);
    case 'conntrack --ctorigdst':
      return isWithin(value, state.original.destination);
    case 'conntrack --ctorigdstport':
      return includesPort(portsIn(value), state.original.port);
    case 'conntrack --ctproto':
    case 'ipvs --vproto':
      return isProtocol(value, state);
    case 'conntrack --ctdir':
      return value === 'ORIGINAL';
    case 'ipvs --vaddr':
      return state.virtualServer !== undefined && isWithin(value, state.virtualServer.ip);
    case 'ipvs --vport':
      return state.virtualServer?.port === Number(value);
    case 'mark --mark': {
      const { number, mask } = markIn(value);
      return Number.isNaN(number + mask) ? undefined : (state.mark & mask) >>> 0 === number >>> 0;
    }
    case 'physdev --physdev-is-in':
      return context.place.viaBridge ?? false;
    case 'addrtype --src-type':
      return hasAddressType(bitsIn(value, typeBit), state.source, context);
    case 'addrtype --dst-type':
      return hasAddressType(bitsIn(value, typeBit), state.destination, context);
    case 'iprange --src-range':
      return isInRange(value, state.source);
    case 'iprange --dst-range':
      return isInRange(value, state.destination);
    default:
      return undefined;
  }
}

function isProtocol(text: string, { protocol }: PacketState): boolean {
  return (PROTOCOL_NUMBERS[text] ?? text) === protocol.toLowerCase();
}

function isInterface(pattern: string, name: string): boolean {
  return pattern.endsWith('+') ? name.startsWith(pattern.slice(0, -1)) : pattern === name;
}

/** `80,443,1000:2000` */
function portsIn(list: string): readonly PortRange[] {
  return list.split(',').map((range) => {
    const [from = '', to = from] = range.split(':');
    return [from === '' ? 0 : Number(from), to === '' ? 65_535 : Number(to)];
  });
}

function flagsIn(list: string): number {
  if (list === 'ALL') return 0x3f;
  return bitsIn(list, (word) => 1 << TCP_FLAGS.findIndex((flag) => flag === word)) & 0x3f;
}

function typeBit(word: string): number {
  return 1 << ADDRESS_TYPES.findIndex((type) => type === word);
}

function bitsIn(list: string, bit: (word: string) => number): number {
  return list.split(',').reduce((bits, word) => bits | bit(word), 0);
}

function isWithin(text: string, ip: Ip): MatchAnswer {
  // As a save prints one address. A service with 5,000 endpoints has as many to compare with.
  if (text.endsWith('/32') && text.includes('.')) return text.length === ip.length + 3 && text.startsWith(ip);
  if (!text.includes('/')) return text === ip || parseIp(text) === ip;
  const cidr: Cidr | undefined = parseCidr(text);
  return cidr && cidrContains(cidr, ip);
}

/** `10.0.0.1-10.0.0.9` */
function isInRange(range: string, ip: Ip): MatchAnswer {
  const [from, to] = range.split('-').map(parseBytes);
  const bytes = parseBytes(ip);
  if (!from || !to || !bytes || from.length !== bytes.length || to.length !== bytes.length) return undefined;
  return Buffer.compare(from, bytes) <= 0 && Buffer.compare(bytes, to) <= 0;
}
