/**
 * Matches that Junction never writes, as other programs do. Where it takes more than the packet to know (rates, sets, the
 * client's port, routes that nobody can ask for), the answer is `undefined`.
 */
import { cidrContains, type Ip, parseBytes, parseCidr, parseIp } from '../../../model/ip.ts';
import type { WalkContext, Way } from '../../walk.ts';
import { ruleProtocol } from './names.ts';
import type { ConntrackState } from './rule.ts';

export type MatchAnswer = boolean | undefined;

interface MatchedPacket {
  readonly way: Way<unknown>;
  readonly context: WalkContext;
  /** Of a packet that leaves the node, where it is known. */
  readonly outInterface: () => string | undefined;
}

/** One option of a match module, or of the rule itself. */
interface Option {
  readonly not: boolean;
  readonly name: string;
  readonly values: readonly string[];
}

/** All of them match. */
function allOf(answers: Iterable<MatchAnswer>): MatchAnswer {
  let all: MatchAnswer = true;
  for (const answer of answers) {
    if (answer === false) return false;
    if (answer === undefined) all = undefined;
  }
  return all;
}

function negated(answer: MatchAnswer, not: boolean): MatchAnswer {
  return answer === undefined ? undefined : answer !== not;
}

/** `args` as a rule has them: `-o eth0`, `! --sport 1:5`, `-m multiport --dports 80,443`. */
export function answerOther(args: readonly string[], packet: MatchedPacket): MatchAnswer {
  const [first, module = '', ...rest] = args;
  if (first !== '-m') return allOf(optionsOf(args).map((option) => answerOption('', option, packet)));
  const options = optionsOf(rest);
  if (options.length === 0) return undefined;
  return allOf(options.map((option) => answerOption(module, option, packet)));
}

function optionsOf(words: readonly string[]): readonly Option[] {
  const options: { not: boolean; name: string; values: string[] }[] = [];
  let not = false;
  for (const word of words) {
    if (word === '!') not = true;
    else if (word.startsWith('-')) {
      options.push({ not, name: word, values: [] });
      not = false;
    } else options.at(-1)?.values.push(word);
  }
  return options;
}

function answerOption(module: string, { not, name, values }: Option, packet: MatchedPacket): MatchAnswer {
  return negated(answerPlain(module, name, values, packet), not);
}

function answerPlain(
  module: string,
  name: string,
  [value = '', second = '']: readonly string[],
  packet: MatchedPacket,
): MatchAnswer {
  const { way, context } = packet;
  switch (module === '' ? name : `${module} ${name}`) {
    case 'comment --comment':
    case 'nfacct --nfacct-name':
      return true;
    case '-o':
      return answerOutInterface(value, packet);
    case '-p':
      return value === 'all' || value === '0' || value === ruleProtocol(way.protocol);
    case '-f': // the second fragment of a packet, and those after it
      return false;
    case '--dport':
    case 'tcp --dport':
    case 'udp --dport':
      return includesPort(value, way.port);
    case '--sport':
    case 'tcp --sport':
    case 'udp --sport':
    case 'multiport --sports':
      return includesEveryPort(value) ? true : undefined;
    case 'multiport --dports':
      return includesPort(value, way.port);
    case 'multiport --ports':
      return includesPort(value, way.port) || undefined;
    case '--tcp-flags':
    case 'tcp --tcp-flags':
      return way.protocol === 'TCP' && hasSynOnly(value, second);
    case '--syn':
      return way.protocol === 'TCP';
    case 'state --state':
    case 'conntrack --ctstate':
      return value.split(',').some((state) => hasState(way, state));
    case 'conntrack --ctorigsrc':
      return within(value, way.original.source);
    case 'conntrack --ctorigdst':
      return within(value, way.original.destination);
    case 'conntrack --ctorigdstport':
      return includesPort(value, way.original.port);
    case 'conntrack --ctproto':
      return value === ruleProtocol(way.protocol);
    case 'conntrack --ctdir':
      return value === 'ORIGINAL';
    case 'addrtype --src-type':
      return hasType(value, way.source, context);
    case 'addrtype --dst-type':
      return hasType(value, way.destination, context);
    case 'iprange --src-range':
      return inRange(value, way.source);
    case 'iprange --dst-range':
      return inRange(value, way.destination);
    default:
      return undefined;
  }
}

/** A packet to the node itself goes out by lo. Any other's interface is a matter of routes. */
function answerOutInterface(pattern: string, { way, context, outInterface }: MatchedPacket): MatchAnswer {
  if (pattern === '+') return true;
  if (/ (?:prerouting|input)$/.test(way.hook)) return false;
  const name = context.isLocal(way.destination) ? 'lo' : outInterface();
  return name === undefined ? undefined : isInterface(pattern, name);
}

export function isInterface(pattern: string, name: string): boolean {
  return pattern.endsWith('+') ? name.startsWith(pattern.slice(0, -1)) : pattern === name;
}

/** `80,443,1000:2000` */
function includesPort(list: string, port: number): boolean {
  return list.split(',').some((range) => {
    const [from, to] = boundsOf(range);
    return from <= port && port <= to;
  });
}

function includesEveryPort(list: string): boolean {
  const [from, to] = boundsOf(list);
  return from <= 1 && to === 65_535;
}

function boundsOf(range: string): readonly [number, number] {
  const [from = '', to = from] = range.split(':');
  return [from === '' ? 0 : Number(from), to === '' ? 65_535 : Number(to)];
}

/** The first packet of a connection has this flag and no other. */
function hasSynOnly(mask: string, wanted: string): boolean {
  const looked = mask.split(',');
  const seen = looked.includes('SYN') || mask === 'ALL' ? 'SYN' : 'NONE';
  return wanted === seen;
}

export function hasState(way: Way<unknown>, state: ConntrackState | (string & {})): boolean {
  if (way.isUntracked) return state === 'UNTRACKED';
  // The raw table comes before connection tracking.
  if (way.hook.startsWith('raw ') && way.inInterface !== 'lo') return state === 'INVALID';
  return state === 'NEW' || (state === 'DNAT' && way.isRewritten) || (state === 'SNAT' && way.masqueraded);
}

function within(text: string, ip: Ip): MatchAnswer {
  if (!text.includes('/')) return parseIp(text) === ip;
  const cidr = parseCidr(text);
  return cidr && cidrContains(cidr, ip);
}

const MULTICAST = /^(?:22[4-9]|23\d)\.|^ff[0-9a-f]{2}:/;

function hasType(types: string, ip: Ip, { isLocal }: WalkContext): MatchAnswer {
  const is = (type: string): MatchAnswer => {
    if (type === 'LOCAL') return isLocal(ip);
    if (type === 'MULTICAST') return MULTICAST.test(ip);
    // A packet to the node itself is none of the others; else the routes say what it is.
    return isLocal(ip) || MULTICAST.test(ip) ? false : undefined;
  };
  const isNone = allOf(types.split(',').map((type) => negated(is(type), true)));
  return negated(isNone, true);
}

/** `10.0.0.1-10.0.0.9` */
function inRange(range: string, ip: Ip): MatchAnswer {
  const [from, to] = range.split('-').map(parseBytes);
  const bytes = parseBytes(ip);
  if (!from || !to || !bytes || from.length !== bytes.length || to.length !== bytes.length) return undefined;
  return compareBytes(from, bytes) <= 0 && compareBytes(bytes, to) <= 0;
}

function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const at = a.findIndex((byte, index) => byte !== b[index]);
  return at < 0 ? 0 : (a[at] ?? 0) - (b[at] ?? 0);
}
