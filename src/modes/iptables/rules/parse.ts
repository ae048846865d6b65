/**
 * Reads what `iptables-save` prints and what `iptables-restore` takes, of both variants and both families.
 */
import { parseRule } from './parseRule.ts';
import type { Rule } from './rule.ts';

export interface Counters {
  readonly packets: number;
  readonly bytes: number;
}

export interface ParsedRule extends Rule {
  readonly counters?: Counters;
}

export interface ParsedChain {
  /** Built-in chains only. */
  readonly policy?: string;
  readonly rules: readonly ParsedRule[];
}

/** A kernel's rules of one family: table → chain → rules, in the order of the text. */
export type Tables = ReadonlyMap<string, ReadonlyMap<string, ParsedChain>>;

export type RestoreOperation = { readonly table: string; readonly line: number } & (
  | { readonly kind: 'chain'; readonly chain: string; readonly policy?: string }
  | { readonly kind: 'append'; readonly chain: string; readonly rule: ParsedRule }
  /** `position` counts from 1. */
  | { readonly kind: 'insert'; readonly chain: string; readonly position: number; readonly rule: ParsedRule }
  | { readonly kind: 'delete'; readonly chain: string; readonly rule: ParsedRule }
  | { readonly kind: 'deleteAt'; readonly chain: string; readonly position: number }
  | { readonly kind: 'createChain'; readonly chain: string }
  | { readonly kind: 'deleteChain'; readonly chain: string }
  | { readonly kind: 'flush'; readonly chain: string }
  | { readonly kind: 'commit' }
);

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
  const tables = new Map<string, Map<string, { policy?: string; rules: ParsedRule[] }>>();
  for (const operation of readOperations(text)) {
    const { table, line } = operation;
    const chains = tables.get(table) ?? new Map<string, { policy?: string; rules: ParsedRule[] }>();
    tables.set(table, chains);
    if (operation.kind === 'chain') {
      const { chain, policy } = operation;
      chains.set(chain, policy === undefined ? { rules: [] } : { policy, rules: [] });
    } else if (operation.kind === 'append') {
      const chain = chains.get(operation.chain);
      if (!chain) throw new ParseError(table, line, `a rule of the undeclared chain ${operation.chain}`);
      chain.rules.push(operation.rule);
    } else if (operation.kind !== 'commit') {
      throw new ParseError(table, line, 'a save holds chains and appended rules only');
    }
  }
  return tables;
}

/** What a restore is told to do, line by line. */
export function parseRestore(text: string): RestoreOperation[] {
  return [...readOperations(text)];
}

/** Lazy, because a restore has already committed the tables before the line that it cannot read. */
export function* readOperations(text: string): Generator<RestoreOperation, void> {
  let table = '';
  let line = 0;
  let start = 0;
  while (start < text.length) {
    let end = text.indexOf('\n', start);
    if (end < 0) end = text.length;
    line++;
    const first = text.charAt(start);
    if (first !== '#' && start < end) {
      if (first === '*') {
        if (table !== '') throw new ParseError(table, line, 'a table begins before COMMIT');
        table = text.slice(start + 1, end).trim();
      } else {
        const operation = readLine(text, start, end, table, line);
        if (operation) yield operation;
        if (operation?.kind === 'commit') table = '';
      }
    }
    start = end + 1;
  }
  if (table !== '') throw new ParseError(table, line, 'COMMIT expected');
}

/** Nothing for a line without a word in it. */
export function readLine(
  text: string,
  start: number,
  end: number,
  table: string,
  line: number,
): RestoreOperation | undefined {
  const words = tokenize(text, start, end);
  if (!words) throw new ParseError(table, line, 'a quote stays open');
  const first = words[0];
  if (first === undefined) return undefined;
  if (table === '') throw new ParseError(table, line, 'a line before any table');
  try {
    if (first === 'COMMIT') return { table, line, kind: 'commit' };
    if (first.startsWith(':')) return chainOperation(words, table, line);
    return ruleOperation(words, table, line);
  } catch (error) {
    throw new ParseError(table, line, error instanceof Error ? error.message : String(error));
  }
}

function chainOperation(words: readonly string[], table: string, line: number): RestoreOperation {
  const chain = (words[0] ?? '').slice(1);
  const policy = words[1];
  if (chain === '') throw new Error('a chain without a name');
  if (policy === undefined) throw new Error(`chain ${chain} without a policy or "-"`);
  return policy === '-'
    ? { table, line, kind: 'chain', chain }
    : { table, line, kind: 'chain', chain, policy };
}

function ruleOperation(words: readonly string[], table: string, line: number): RestoreOperation {
  const counters = parseCounters(words[0] ?? '');
  const at = counters ? 1 : 0;
  const command = words[at];
  const chain = words[at + 1];
  if (chain === undefined) throw new Error(`${command ?? 'a line'} without a chain`);
  const rule = (from: number): ParsedRule => {
    const parsed = parseRule(words, from);
    // Not `{ ...parsed, counters }`: measured, V8 makes such copies old at once, and old garbage stays long.
    return counters ? Object.assign(parsed, { counters }) : parsed;
  };
  const position = parsePosition(words[at + 2]);
  switch (command) {
    case '-A':
      return { table, line, kind: 'append', chain, rule: rule(at + 2) };
    case '-I':
      return {
        table,
        line,
        kind: 'insert',
        chain,
        position: position ?? 1,
        rule: rule(position === undefined ? at + 2 : at + 3),
      };
    case '-D':
      if (position !== undefined) return { table, line, kind: 'deleteAt', chain, position };
      return { table, line, kind: 'delete', chain, rule: rule(at + 2) };
    case '-N':
      return { table, line, kind: 'createChain', chain };
    case '-X':
      return { table, line, kind: 'deleteChain', chain };
    case '-F':
      return { table, line, kind: 'flush', chain };
    default:
      throw new Error(`cannot read ${command ?? 'this line'}`);
  }
}

function parsePosition(word: string | undefined): number | undefined {
  return word !== undefined && /^\d+$/.test(word) ? Number(word) : undefined;
}

/** `[12:345]` */
function parseCounters(word: string): Counters | undefined {
  if (!word.startsWith('[')) return undefined;
  const match = /^\[(\d+):(\d+)\]$/.exec(word);
  if (!match) throw new Error(`not counters: ${word}`);
  return { packets: Number(match[1]), bytes: Number(match[2]) };
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
    const stop = first === QUOTE ? closingQuote(text, at + 1, end) : endOfWord(text, at + 1, end);
    if (stop === PLAIN_WORD_HAS_QUOTE || stop === NO_PLAIN_QUOTES) {
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

const NO_PLAIN_QUOTES = -1;
const PLAIN_WORD_HAS_QUOTE = -2;

function closingQuote(text: string, from: number, end: number): number {
  for (let at = from; at < end; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at;
    if (code === BACKSLASH) return NO_PLAIN_QUOTES;
  }
  return NO_PLAIN_QUOTES;
}

function endOfWord(text: string, from: number, end: number): number {
  for (let at = from; at < end; at++) {
    const code = text.charCodeAt(at);
    if (code === SPACE || code === TAB) return at;
    if (code === QUOTE) return PLAIN_WORD_HAS_QUOTE;
  }
  return end;
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
