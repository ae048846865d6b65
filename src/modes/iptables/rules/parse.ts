/**
 * Reads what `iptables-save` prints, of both variants and both families, while it arrives, and keeps no more of it than is
 * needed.
 *
 * A large cluster's save is 50 MB of text, nearly all of it chains that belong to one service each and are as they
 * should be. A caller that knows how they should be passes their digests, and the rules of those that are so are dropped.
 */
import { runToEnd } from '../../../time/timeSlice.ts';
import { isServiceChain } from './names.ts';
import { parseRule } from './parseRule.ts';
import { printRule, ruleKey } from './print.ts';
import type { Rule } from './rule.ts';

export interface Counters {
  readonly packets: number;
  readonly bytes: number;
}

export interface ParsedRule extends Rule {
  readonly counters?: Counters;
  /** Of a chain that iptables cannot print: only where it jumps to is known. */
  readonly isOpaque?: true;
}

export interface ParsedChain {
  /** Built-in chains only. */
  readonly policy?: string;
  readonly rules: readonly ParsedRule[];
}

/** A kernel's rules of one family: table → chain → rules, in the order of the text. */
export type Tables = ReadonlyMap<string, ReadonlyMap<string, ParsedChain>>;

export class ParseError extends Error {
  override readonly name: string = 'ParseError';
  readonly line: number;
  readonly table: string;
  readonly reason: string;

  constructor(table: string, line: number, reason: string) {
    super(`iptables text, table ${table || '(none)'}, line ${line}: ${reason}`);
    this.line = line;
    this.table = table;
    this.reason = reason;
  }
}

/** The state that a save describes. */
export function parseSave(text: string): Tables {
  const reader = new SaveReader();
  runToEnd(reader.take(text));
  return reader.end();
}

/** The digests of chains that are wanted. */
export type WantedChains = ReadonlySet<number>;

/** Stands for a chain whose rules are those that are wanted. */
export const IN_PLACE: ParsedChain = { rules: [] };

const EMPTY: ParsedChain = { rules: [] };

export function digestChain(name: string, rules: readonly Rule[]): number {
  return digest([name, ...rules.map(ruleKey)]);
}

export class SaveReader {
  readonly #wanted: WantedChains;
  readonly #tables = new Map<string, Map<string, ParsedChain>>();
  #table = '';
  #line = 0;
  /** The chain whose rules are being read; in a save they stand together. */
  #chain = '';
  #rules: ParsedRule[] = [];
  /** A line that has not ended yet. */
  #rest = '';

  constructor(wanted: WantedChains = new Set()) {
    this.#wanted = wanted;
  }

  /** Line by line, so that the reader can rest in between. */
  *take(text: string): Generator<void> {
    const all = this.#rest + text;
    let start = 0;
    for (let end = all.indexOf('\n'); end >= 0; end = all.indexOf('\n', start)) {
      this.#takeLine(all, start, end);
      start = end + 1;
      yield;
    }
    this.#rest = all.slice(start);
  }

  /** Everything has been taken. */
  end(): Tables {
    if (this.#rest !== '') this.#takeLine(this.#rest, 0, this.#rest.length);
    if (this.#table !== '') throw this.#error('COMMIT expected');
    return this.#tables;
  }

  #takeLine(text: string, start: number, end: number): void {
    this.#line++;
    const first = text.charAt(start);
    if (first === '#' || start === end) return;
    if (first === '*') {
      if (this.#table !== '') throw this.#error('a table begins before COMMIT');
      this.#table = text.slice(start + 1, end).trim();
      if (!this.#tables.has(this.#table)) this.#tables.set(this.#table, new Map());
      return;
    }
    const words = tokenize(text, start, end);
    if (!words) throw this.#error('a quote stays open');
    if (words.length === 0) return;
    if (this.#table === '') throw this.#error('a line before any table');
    try {
      this.#takeWords(words);
    } catch (error) {
      throw error instanceof Error && !(error instanceof ParseError) ? this.#error(error.message) : error;
    }
  }

  #takeWords(words: readonly string[]): void {
    const first = words[0] ?? '';
    if (first === 'COMMIT') {
      this.#closeChain();
      this.#table = '';
    } else if (first.startsWith(':')) {
      const { chain, policy } = chainDeclaration(words);
      this.#chains.set(chain, policy === undefined ? EMPTY : { policy, rules: [] });
    } else this.#append(...appendedRule(words));
  }

  get #chains(): Map<string, ParsedChain> {
    return this.#tables.get(this.#table) ?? new Map();
  }

  #append(name: string, rule: ParsedRule): void {
    if (name !== this.#chain) {
      this.#closeChain();
      if (!this.#chains.has(name)) throw this.#error(`a rule of the undeclared chain ${name}`);
      this.#chain = name;
    }
    this.#rules.push(rule);
  }

  #closeChain(): void {
    const name = this.#chain;
    const rules = this.#rules;
    const before = this.#chains.get(name);
    this.#chain = '';
    this.#rules = [];
    if (!before) return;
    // No save of iptables goes back to a chain; if one does, the chain is not what is wanted.
    const isNew = before !== IN_PLACE && before.rules.length === 0;
    const isInPlace = isNew && isServiceChain(name) && this.#wanted.has(digestChain(name, rules));
    this.#chains.set(name, isInPlace ? IN_PLACE : { ...before, rules: [...before.rules, ...rules] });
  }

  #error(reason: string): ParseError {
    return new ParseError(this.#table, this.#line, reason);
  }
}

/** `:KUBE-SERVICES - [0:0]` */
export function chainDeclaration(words: readonly string[]): {
  readonly chain: string;
  readonly policy: string | undefined;
} {
  const chain = (words[0] ?? '').slice(1);
  const policy = words[1];
  if (chain === '') throw new Error('a chain without a name');
  if (policy === undefined) throw new Error(`chain ${chain} without a policy or "-"`);
  return { chain, policy: policy === '-' ? undefined : policy };
}

/** `[12:345] -A CHAIN …` */
function appendedRule(words: readonly string[]): readonly [chain: string, rule: ParsedRule] {
  const counters = parseCounters(words[0] ?? '');
  const at = counters ? 1 : 0;
  const command = words[at] ?? 'this line';
  const chain = words[at + 1];
  if (command !== '-A')
    throw new Error(`cannot read ${command}: a save holds chains and appended rules only`);
  if (chain === undefined) throw new Error(`${command} without a chain`);
  return [chain, countedRule(words, at + 2, counters)];
}

export function countedRule(
  words: readonly string[],
  from: number,
  counters: Counters | undefined,
): ParsedRule {
  const rule = parseRule(words, from);
  // Not `{ ...rule, counters }`: measured, V8 makes such copies old at once, and old garbage stays long.
  return counters ? Object.assign(rule, { counters }) : rule;
}

/** `[12:345]` */
export function parseCounters(word: string): Counters | undefined {
  if (!word.startsWith('[')) return undefined;
  const match = /^\[(\d+):(\d+)\]$/.exec(word);
  if (!match) throw new Error(`not counters: ${word}`);
  return { packets: Number(match[1]), bytes: Number(match[2]) };
}

/** As words of a command. */
export function ruleArgs(rule: Rule): readonly string[] {
  return tokenize(printRule(rule)) ?? [];
}

/** Whether a save has this rule, in whatever words, for versions of iptables without `-C`. */
export function savedRuleExists(saved: string, chain: string, args: readonly string[]): boolean {
  const key = ruleKey(parseRule(args));
  const prefix = `-A ${chain} `;
  return saved.split('\n').some((line) => {
    if (!line.startsWith(prefix)) return false;
    return ruleKey(parseRule(tokenize(line, prefix.length) ?? [])) === key;
  });
}

/**
 * Lines as one number of 53 bits: two different lists have the same one about never (once in 9,000,000,000,000,000).
 * Nobody who could choose the lines gains by it; it saves memory where 100,000 chains are compared.
 */
function digest(lines: Iterable<string>): number {
  let high = 0xdeadbeef;
  let low = 0x41c6ce57;
  const take = (code: number): void => {
    high = Math.imul(high ^ code, 2_654_435_761);
    low = Math.imul(low ^ code, 1_597_334_677);
  };
  for (const line of lines) {
    for (let index = 0; index < line.length; index++) take(line.charCodeAt(index));
    take(10);
  }
  high = Math.imul(high ^ (high >>> 16), 2_246_822_507) ^ Math.imul(low ^ (low >>> 13), 3_266_489_909);
  low = Math.imul(low ^ (low >>> 16), 2_246_822_507) ^ Math.imul(high ^ (high >>> 13), 3_266_489_909);
  return 4_294_967_296 * (low & 0x1f_ffff) + (high >>> 0);
}

/**
 * One line of a restore or a save, as words.
 *
 * Quotes work as in iptables' own reader: a double quote may open anywhere, a backslash escapes only inside the
 * quotes, and the closing quote ends the word.
 */
const TAB = 9;
const SPACE = 32;
const QUOTE = 34;
const BACKSLASH = 92;

/** The words of `text` from `start` to `end`, or undefined when a quote stays open. */
export function tokenize(text: string, start = 0, end = text.length): string[] | undefined {
  const words: string[] = [];
  let at = start;
  while (at < end) {
    const first = text.charCodeAt(at);
    if (first === SPACE || first === TAB) {
      at++;
      continue;
    }
    const from = at;
    const stop = plainEnd(text, at, end);
    if (stop === NOT_PLAIN) {
      const word = readSlowly(text, from, end);
      if (word === undefined) return undefined;
      words.push(word.text);
      at = word.next;
    } else if (first === QUOTE) {
      words.push(text.slice(from + 1, stop));
      at = stop + 1;
    } else {
      words.push(text.slice(from, stop));
      at = stop;
    }
  }
  return words;
}

const NOT_PLAIN = -1;

/** Where the word that begins here ends, or its closing quote stands; unless it has quotes or backslashes inside. */
function plainEnd(text: string, start: number, end: number): number {
  const isQuoted = text.charCodeAt(start) === QUOTE;
  for (let at = start + 1; at < end; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return isQuoted ? at : NOT_PLAIN;
    if (isQuoted ? code === BACKSLASH : code === SPACE || code === TAB) return isQuoted ? NOT_PLAIN : at;
  }
  return isQuoted ? NOT_PLAIN : end;
}

function readSlowly(
  text: string,
  start: number,
  end: number,
): { readonly text: string; readonly next: number } | undefined {
  let word = '';
  let open = false;
  for (let at = start; at < end; at++) {
    const code = text.charCodeAt(at);
    if (open && code === BACKSLASH) {
      at++;
      if (at < end) word += text.charAt(at);
    } else if (code === QUOTE) {
      if (open) return { text: word, next: at + 1 };
      open = true;
    } else if (!open && (code === SPACE || code === TAB)) {
      return { text: word, next: at };
    } else {
      word += text.charAt(at);
    }
  }
  return open ? undefined : { text: word, next: end };
}
