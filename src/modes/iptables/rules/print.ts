/**
 * Rules as text: the lines of a restore, and the arguments of `iptables -C` and `-I`.
 *
 * A cold start prints 150,000 rules, hence plain switches and string concatenation.
 */
import type { Match, Rule, Target } from './rule.ts';
import { ruleKey, tokenize } from './words.ts';

/** `-A CHAIN <arguments>` */
export function appendLine(chain: string, rule: Rule): string {
  return `-A ${chain}${print(rule)}`;
}

/** `:CHAIN - [0:0]`, which creates the chain or empties it. */
export function chainLine(chain: string): string {
  return `:${chain} - [0:0]`;
}

/** The rule's arguments as a restore takes them: of a rule of ours, or of one as it was read. */
export function printRule(rule: Rule | { readonly text: string }): string {
  return 'text' in rule ? rule.text : print(rule).slice(1);
}

/** As words of a command. */
export function ruleArgs(rule: Rule | { readonly text: string }): readonly string[] {
  return tokenize(printRule(rule)) ?? [];
}

/** The same for all writings of the rule. */
export function keyOfRule(rule: Rule): string {
  return ruleKey(printRule(rule));
}

/** A packet mark as kube-proxy writes it: `0x00004000`. */
export function printMark(mark: number): string {
  return `0x${(mark >>> 0).toString(16).padStart(8, '0')}`;
}

/** What may stand in a comment that Junction writes. */
const COMMENT = /^[A-Za-z0-9 ./:_;,>[\]'+=-]+$/;
/** The kernel's `XT_MAX_COMMENT_LEN`, less the closing zero byte. */
const COMMENT_LENGTH = 255;

/** Printable, and nothing that a restore would take for a quote, an option or a negation. */
const WORD = /^[#-,.-[\]-~][#-[\]-~]*$/;

function print(rule: Rule): string {
  let text = '';
  for (const match of rule.matches) text += matchText(match);
  return rule.target === undefined ? text : text + targetText(rule.target);
}

/** With a space before it. */
function matchText(match: Match): string {
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
    default:
      return target satisfies never;
  }
}

function checkedComment(text: string): string {
  if (text.length > COMMENT_LENGTH || !COMMENT.test(text))
    throw new Error(`not allowed in an iptables comment: ${JSON.stringify(text)}`);
  return text;
}

function checkedWord(text: string): string {
  if (!WORD.test(text)) throw new Error(`not allowed as a word of an iptables rule: ${JSON.stringify(text)}`);
  return text;
}
