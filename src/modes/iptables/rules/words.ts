/** The text of a rule as words, options and a target, and one key for all writings of the same rule. Pure. */
import { parseCidr, parseIp } from '../../../model/ip.ts';

/** One option of a match module (`-m tcp --dport 80`), or of the rule itself (`-d 10.0.0.1`). */
export interface Option {
  readonly module: string;
  /** Which `-m` of the rule it belongs to, from 1; 0: none. */
  readonly group: number;
  readonly not: boolean;
  readonly name: string;
  readonly values: readonly string[];
}

export interface ParsedRule {
  /** A module is here by itself (`-m tcp`) only where it has no options. */
  readonly options: readonly Option[];
  /** `-j DNAT --to-destination 10.0.0.1:80` */
  readonly target: readonly string[];
}

/**
 * Quotes work as in iptables' own reader: a double quote may open anywhere, a backslash escapes only inside the quotes, and the
 * closing quote ends the word.
 */
const WORD = /[ \t]*([^ \t"]*)(?:"((?:[^"\\]|\\[^])*)("?))?/y;

/** Undefined when a quote stays open. */
export function tokenize(text: string): string[] | undefined {
  const words: string[] = [];
  for (WORD.lastIndex = 0; WORD.lastIndex < text.length; ) {
    const [, plain = '', quoted, end] = WORD.exec(text) ?? [];
    if (quoted === undefined && plain === '') break; // white space at the end
    if (quoted !== undefined && end === '') return undefined;
    words.push(quoted === undefined ? plain : plain + quoted.replaceAll(/\\([^])/g, '$1'));
  }
  return words;
}

/** What cannot be read as a rule becomes a target that nobody knows. */
export function parseText(text: string): ParsedRule {
  const words = tokenize(text);
  const parsed = words && parseWords(words);
  return parsed ?? { options: [], target: [text] };
}

export function parseWords(words: readonly string[]): ParsedRule | undefined {
  const jump = words.findIndex(isJump);
  const jumped = jump < 0 ? [] : words.slice(jump);
  // The target may stand before matches.
  const next = jumped.findIndex((word, at) => at > 1 && /^(?:!|-[a-z])$/.test(word));
  const target = next < 0 ? jumped : jumped.slice(0, next);
  const others = [...words.slice(0, jump < 0 ? undefined : jump), ...(next < 0 ? [] : jumped.slice(next))];
  if (others.some(isJump)) return undefined;
  const options: { module: string; group: number; not: boolean; name: string; values: string[] }[] = [];
  let module = '';
  let group = 0;
  let groups = 0;
  let not = false;
  for (const word of others) {
    const last = options.at(-1);
    if (last?.name === '-m' && last.values.length === 0) {
      last.values.push(word);
      last.group = group = ++groups;
      module = word;
    } else if (last && !not && isValue(last, word)) last.values.push(word);
    else if (word === '!') not = true;
    else {
      // An option of the rule itself ends those of a module, but for ports and flags, which are the protocol's.
      if (!word.startsWith('--')) [module, group] = ['', 0];
      // A module is judged by its options, where it has some.
      else if (last?.name === '-m') options.pop();
      options.push({ module, group, not, name: word, values: [] });
      not = false;
    }
  }
  return { options, target };
}

function isJump(word: string, at: number, words: readonly string[]): boolean {
  return (word === '-j' || word === '-g') && words[at - 1] !== '--comment';
}

/** A comment may be anything; other values are no options. */
function isValue({ name, values }: Option, word: string): boolean {
  if (name === '--comment') return values.length === 0;
  return word !== '!' && !word.startsWith('-');
}

/**
 * One text for all writings of the same rule, so that what Junction wants can be compared with what a save shows.
 *
 * Two rules have the same key exactly when the kernel holds the same rule for them. The kernel (both variants, checked
 * with iptables 1.8.9) keeps addresses, interfaces and the protocol number apart from the matches, keeps the matches in
 * their order, and forgets how an option was written. Tabs and newlines cannot stand in a rule, so they keep the parts apart.
 */
export function ruleKey(text: string): string {
  return keyOf(parseText(text));
}

export function keyOf({ options, target }: ParsedRule): string {
  const header: string[] = [];
  const matches = new Map<number, string[]>();
  for (const option of options) {
    const { name, values, group } = option;
    const module = name === '-m' ? (values[0] ?? '') : option.module;
    const key = name === '-m' ? '' : optionKey(option);
    if (name.startsWith('--') || name === '-m') {
      // Options of the protocol's module belong to it wherever they stand.
      const isOfProtocol = group === 0 || PROTOCOL_MODULES.has(module) || PROTOCOL_OPTIONS.has(name);
      const keys = matches.get(isOfProtocol ? 0 : group) ?? [isOfProtocol ? '' : module];
      matches.set(isOfProtocol ? 0 : group, keys);
      if (key !== '') keys.push(key);
    } else if (key !== '') header.push(key);
  }
  const parts = [...matches.values()].map(([module = '', ...keys]) => [module, ...keys.sort()].join('\t'));
  return [header.sort().join('\t'), ...parts, `>${targetKey(target)}`].join('\n');
}

const PROTOCOL_MODULES: ReadonlySet<string> = new Set(['tcp', 'udp', 'sctp']);
const PROTOCOL_OPTIONS: ReadonlySet<string> = new Set(['--dport', '--sport', '--tcp-flags', '--syn']);
/** Some saves print a protocol as its number. */
export const PROTOCOL_NUMBERS: Readonly<Record<string, string>> = { 6: 'tcp', 17: 'udp', 132: 'sctp' };
const HOST_MASK = /^(?:255\.255\.255\.255|ffff(?::ffff){7})$/;

/** '' for one that the kernel keeps nothing of, or that a save adds as the default. */
function optionKey({ not, name, values: [value = '', ...more] }: Option): string {
  if ((name === '-s' || name === '-d') && value.endsWith('/0') && !not) return '';
  if (name === '--rsource' || (name === '--mask' && HOST_MASK.test(value))) return '';
  return [not ? `!${name}` : name, VALUE_KEYS[name]?.(value) ?? value, ...more].join('\t');
}

const VALUE_KEYS: Readonly<Record<string, (value: string) => string>> = {
  '-s': addressKey,
  '-d': addressKey,
  '--vaddr': addressKey,
  '-p': (value) => PROTOCOL_NUMBERS[value] ?? value,
  '--vproto': (value) => PROTOCOL_NUMBERS[value] ?? value,
  '--ctstate': (value) => [...new Set(value.split(','))].sort().join(),
  '--probability': (value) => String(probabilityBits(value)),
  '--mark': markKey,
};

/** The kernel draws 31 random bits and compares them with this. */
export function probabilityBits(probability: string): number {
  return Math.round(Number(probability) * 2 ** 31);
}

function addressKey(text: string): string {
  const address = text.includes('/') ? parseCidr(text) : parseIp(text);
  if (address === undefined || address.includes('/')) return address ?? text;
  return address + (address.includes(':') ? '/128' : '/32');
}

/** `0x4000/0xffff` */
export function markIn(text: string): { readonly number: number; readonly mask: number } {
  const [number = Number.NaN, mask = 0xffff_ffff] = text.split('/').map(Number);
  return { number, mask };
}

function markKey(text: string): string {
  const { number, mask } = markIn(text);
  return Number.isNaN(number + mask) ? text : `${number}/${mask}`;
}

function targetKey(target: readonly string[]): string {
  const [jump, name, option, value = '', ...rest] = target;
  const words = target.join('\t');
  if (jump !== '-j' || option === undefined || rest.length > 0) return words;
  if (name === 'REJECT' && /^icmp6?-port-unreachable$/.test(value)) return `-j\t${name}`;
  if (name === 'DNAT') return `-j\t${name}\t${option}\t${destinationKey(value)}`;
  if (name !== 'MARK') return words;
  const { number, mask } = markIn(value);
  const flips = option === '--xor-mark' || (option === '--set-xmark' && mask === 0);
  const sets = option === '--or-mark' || (option === '--set-xmark' && mask === number);
  return flips || sets ? `MARK ${flips ? '^' : '|'}${number}` : words;
}

/** `[fd00:0::1]:80` → `[fd00::1]:80`. Of IPv4 addresses Junction and the kernel write one form only. */
function destinationKey(to: string): string {
  const [, address = '', rest = ''] = /^\[(.*)\](.*)$/.exec(to) ?? [];
  const ip = parseIp(address);
  return ip === undefined ? to : `[${ip}]${rest}`;
}
