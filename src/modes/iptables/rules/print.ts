/**
 * Rules as text: the lines of a restore, and the arguments of `iptables -C` and `-I`.
 *
 * A cold start prints 150,000 rules, hence plain switches and string concatenation.
 */
import type { Match, Rule, Target } from './rule.ts';
import { parseIp } from '../../../model/ip.ts';

/** `-A CHAIN <arguments>` */
export function appendLine(chain: string, rule: Rule): string {
  return `-A ${chain}${print(rule)}`;
}

/** `:CHAIN - [0:0]`, which creates the chain or empties it. */
export function chainLine(chain: string): string {
  return `:${chain} - [0:0]`;
}

/** The rule's arguments as a restore takes them. */
export function printRule(rule: Rule): string {
  return print(rule).slice(1);
}

/** A packet mark as kube-proxy writes it: `0x00004000`. */
export function printMark(mark: number): string {
  return `0x${(mark >>> 0).toString(16).padStart(8, '0')}`;
}

/** What may stand in a comment that Junction writes. */
const COMMENT = /^[A-Za-z0-9 ./:_;,>[\]'+=-]+$/;
/** The kernel's `XT_MAX_COMMENT_LEN`, less the closing zero byte. */
const COMMENT_LENGTH = 255;

export function isPlainComment(text: string): boolean {
  return text.length <= COMMENT_LENGTH && COMMENT.test(text);
}

/** Printable, and nothing that a restore would take for a quote, an option or a negation. */
const WORD = /^[#-,.-[\]-~][#-[\]-~]*$/;

function print(rule: Rule): string {
  let text = '';
  for (const match of rule.matches) text += matchText(match, checkedWord);
  return rule.target === undefined ? text : text + targetText(rule.target);
}

/** With a space before it. `word` checks a name, or leaves it as it is. */
function matchText(match: Match, word: (text: string) => string): string {
  switch (match.kind) {
    case 'comment': {
      const text = checkedComment(match.text);
      return text.includes(' ') ? ` -m comment --comment "${text}"` : ` -m comment --comment ${text}`;
    }
    case 'protocol':
      return match.bare === true ? ` -p ${match.protocol}` : ` -m ${match.protocol} -p ${match.protocol}`;
    case 'source':
      return (match.not ? ' ! -s ' : ' -s ') + match.cidr;
    case 'destination':
      return (match.not ? ' ! -d ' : ' -d ') + match.cidr;
    case 'destinationPort':
      return ` --dport ${match.port}`;
    case 'inInterface':
      return (match.not ? ' ! -i ' : ' -i ') + word(match.name);
    case 'addressType':
      return ` -m addrtype${match.not ? ' !' : ''} --${match.side}-type ${match.type}`;
    case 'conntrackState':
      return ` -m conntrack${match.not ? ' !' : ''} --ctstate ${match.states.join(',')}`;
    case 'mark':
      return ` -m mark${match.not ? ' !' : ''} --mark ${printMark(match.value)}/${printMark(match.mask)}`;
    case 'statistic':
      return ` -m statistic --mode random --probability ${word(match.probability)}`;
    case 'recentSet':
      return ` -m recent --name ${word(match.name)} --set`;
    case 'recentCheck':
      return ` -m recent --name ${word(match.name)} --rcheck --seconds ${match.seconds}${match.reap ? ' --reap' : ''}`;
    case 'physdevIsIn':
      return match.not ? ' -m physdev ! --physdev-is-in' : ' -m physdev --physdev-is-in';
    case 'nfacct':
      return ` -m nfacct --nfacct-name ${word(match.name)}`;
    case 'set':
      return ` -m set --match-set ${word(match.name)} ${match.sides.join(',')}`;
    case 'virtualServer':
      return ` -m ipvs --vaddr ${match.address} --vproto ${match.protocol} --vport ${match.port}`;
    case 'other':
      return printOther(match.args);
    default:
      return match satisfies never;
  }
}

/** With a space before it. */
function targetText(target: Target): string {
  switch (target.kind) {
    case 'jump':
      return ` -j ${checkedWord(target.chain)}`;
    case 'accept':
    case 'drop':
    case 'return':
    case 'reject':
      return ` -j ${target.kind.toUpperCase()}`;
    case 'mark': {
      const mark = printMark(target.value);
      if (target.operation === 'set') return ` -j MARK --set-xmark ${mark}/${mark}`;
      return ` -j MARK --${target.operation}-mark ${mark}`;
    }
    case 'dnat':
      return ` -j DNAT --to-destination ${checkedWord(target.to)}`;
    case 'masquerade':
      return target.randomFully ? ' -j MASQUERADE --random-fully' : ' -j MASQUERADE';
    case 'other':
      return printOther(target.args);
    default:
      return target satisfies never;
  }
}

function printOther(args: readonly string[]): string {
  let text = '';
  for (const arg of args) text += ` ${quoted(arg)}`;
  return text;
}

const NEEDS_NO_QUOTES = /^[!#-[\]-~]+$/;
const PRINTABLE = /^[ -~\u0080-\uffff]*$/;

function quoted(arg: string): string {
  if (NEEDS_NO_QUOTES.test(arg)) return arg;
  if (!PRINTABLE.test(arg)) throw new Error(`not printable in an iptables rule: ${JSON.stringify(arg)}`);
  return `"${arg.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
}

function checkedComment(text: string): string {
  if (!isPlainComment(text)) throw new Error(`not allowed in an iptables comment: ${JSON.stringify(text)}`);
  return text;
}

function checkedWord(text: string): string {
  if (!WORD.test(text)) throw new Error(`not allowed as a word of an iptables rule: ${JSON.stringify(text)}`);
  return text;
}

/**
 * One text for all writings of the same rule, so that what Junction wants can be compared with what a save shows.
 *
 * Two rules have the same key exactly when the kernel holds the same rule for them. The kernel (both variants, checked
 * with iptables 1.8.9) keeps addresses, interfaces and the protocol number apart from the matches, keeps the matches in
 * their order, and forgets how an option was written.
 */
export function ruleKey(rule: Rule): string {
  let source = '';
  let destination = '';
  let inInterface = '';
  let protocol = '';
  let matches = '';
  const header: string[] = [];
  for (const match of rule.matches) {
    switch (match.kind) {
      case 'source':
        source = addressKey(match.cidr, match.not);
        break;
      case 'destination':
        destination = addressKey(match.cidr, match.not);
        break;
      case 'inInterface':
        inInterface = match.not ? `!${match.name}` : match.name;
        break;
      case 'protocol':
        protocol = match.protocol;
        if (match.bare !== true) matches += `\n${match.protocol}${protocolOptions(rule)}`;
        break;
      case 'destinationPort':
        break; // with the protocol
      case 'other':
        if (isHeaderOption(match.args)) header.push(words(match.args));
        else if (!isProtocolOption(match.args)) matches += `\n${words(match.args)}`;
        break;
      case 'comment':
        matches += `\n"${match.text}`;
        break;
      case 'conntrackState': {
        const states = [...new Set(match.states)].sort();
        matches += `\n${matchText({ ...match, states }, asIs)}`;
        break;
      }
      case 'statistic':
        matches += `\nrandom ${probabilityBits(match.probability)}`;
        break;
      default:
        matches += `\n${matchText(match, asIs)}`;
    }
  }
  const rest = header.length === 0 ? '' : header.sort().join(' ');
  return `${source},${destination},${inInterface},${protocol},${rest}${matches}\n>${targetKey(rule.target)}`;
}

function asIs(text: string): string {
  return text;
}

/** The kernel draws 31 random bits and compares them with this. */
export function probabilityBits(probability: string): number {
  return Math.round(Number(probability) * 2 ** 31);
}

/** A mask of no bits matches every address, and the kernel keeps nothing of it. */
function addressKey(cidr: string, not: boolean): string {
  if (cidr.endsWith('/0') && !not) return '';
  const whole = cidr.includes('/') ? cidr : cidr + (cidr.includes(':') ? '/128' : '/32');
  return not ? `!${whole}` : whole;
}

/** `[fd00:0::1]:80` → `[fd00::1]:80`. Of IPv4 addresses Junction and the kernel write one form only. */
function destinationKey(to: string): string {
  const close = to.indexOf(']');
  const ip = to.startsWith('[') && close > 0 ? parseIp(to.slice(1, close)) : undefined;
  return ip === undefined ? to : `[${ip}${to.slice(close)}`;
}

/** Options of the protocol's module belong to it wherever they stand, and a save prints them in its own order. */
function protocolOptions(rule: Rule): string {
  let options = '';
  const others: string[] = [];
  for (const match of rule.matches) {
    if (match.kind === 'destinationPort') options += ` ${match.port}`;
    else if (match.kind === 'other' && isProtocolOption(match.args)) others.push(words(match.args));
  }
  return others.length === 0 ? options : `${options} ${others.sort().join(' ')}`;
}

/** Tabs and newlines cannot stand in a rule, so they keep the parts of a key apart. */
function words(args: readonly string[]): string {
  return args.join('\t');
}

function isProtocolOption(args: readonly string[]): boolean {
  return optionOf(args).startsWith('--');
}

/** `-o eth0`, `-p icmp`, `-f`: single-letter options other than `-m`. */
function isHeaderOption(args: readonly string[]): boolean {
  const option = optionOf(args);
  return option.length === 2 && option !== '-m';
}

function optionOf(args: readonly string[]): string {
  return (args[0] === '!' ? args[1] : args[0]) ?? '';
}

function targetKey(target: Target | undefined): string {
  if (!target) return '';
  switch (target.kind) {
    case 'jump':
      return target.chain;
    case 'mark':
      return `MARK ${target.operation === 'xor' ? '^' : '|'}${target.value >>> 0}`;
    case 'dnat':
      return `DNAT ${destinationKey(target.to)}`;
    case 'other':
      return words(target.args);
    default:
      return targetText(target);
  }
}
