/**
 * Rules as text: the lines of a restore, and the arguments of `iptables -C` and `-I`.
 *
 * A cold start prints 150,000 rules, hence plain switches and string concatenation.
 */
import type { Match, Rule, Target } from './rule.ts';

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

/** Every part is printed with a space before it. */
function print(rule: Rule): string {
  let text = '';
  for (const match of rule.matches) text += printMatch(match);
  return rule.target === undefined ? text : text + printTarget(rule.target);
}

function printMatch(match: Match): string {
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
      return (match.not ? ' ! -i ' : ' -i ') + checkedWord(match.name);
    case 'addressType':
      return ` -m addrtype${match.not ? ' !' : ''} --${match.side}-type ${match.type}`;
    case 'conntrackState':
      return ` -m conntrack${match.not ? ' !' : ''} --ctstate ${match.states.join(',')}`;
    case 'mark':
      return ` -m mark${match.not ? ' !' : ''} --mark ${printMark(match.value)}/${printMark(match.mask)}`;
    case 'statistic':
      return ` -m statistic --mode random --probability ${checkedWord(match.probability)}`;
    case 'recentSet':
      return ` -m recent --name ${checkedWord(match.name)} --set`;
    case 'recentCheck':
      return ` -m recent --name ${checkedWord(match.name)} --rcheck --seconds ${match.seconds}${match.reap ? ' --reap' : ''}`;
    case 'physdevIsIn':
      return match.not ? ' -m physdev ! --physdev-is-in' : ' -m physdev --physdev-is-in';
    case 'nfacct':
      return ` -m nfacct --nfacct-name ${checkedWord(match.name)}`;
    case 'set':
      return ` -m set --match-set ${checkedWord(match.name)} ${match.sides.join(',')}`;
    case 'virtualServer':
      return ` -m ipvs --vaddr ${match.address} --vproto ${match.protocol} --vport ${match.port}`;
    case 'other':
      return printOther(match.args);
    default:
      return match satisfies never;
  }
}

function printTarget(target: Target): string {
  switch (target.kind) {
    case 'jump':
      return ` -j ${checkedWord(target.chain)}`;
    case 'accept':
      return ' -j ACCEPT';
    case 'drop':
      return ' -j DROP';
    case 'return':
      return ' -j RETURN';
    case 'reject':
      return ' -j REJECT';
    case 'mark':
      return printMarkTarget(target.operation, printMark(target.value));
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

function printMarkTarget(operation: 'or' | 'xor' | 'set', mark: string): string {
  return operation === 'set'
    ? ` -j MARK --set-xmark ${mark}/${mark}`
    : ` -j MARK --${operation}-mark ${mark}`;
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
