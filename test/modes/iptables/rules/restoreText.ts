/** What `iptables-restore` takes, line by line, as operations. */
import {
  chainDeclaration,
  countedRule,
  parseCounters,
  type ParsedRule,
  ParseError,
  tokenize,
} from '../../../../src/modes/iptables/rules/parse.ts';

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
function readLine(
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
    if (first.startsWith(':')) {
      const { chain, policy } = chainDeclaration(words);
      return { table, line, kind: 'chain', chain, ...(policy !== undefined && { policy }) };
    }
    return ruleOperation(words, table, line);
  } catch (error) {
    throw new ParseError(table, line, error instanceof Error ? error.message : String(error));
  }
}

function ruleOperation(words: readonly string[], table: string, line: number): RestoreOperation {
  const counters = parseCounters(words[0] ?? '');
  const at = counters ? 1 : 0;
  const command = words[at];
  const chain = words[at + 1];
  if (chain === undefined) throw new Error(`${command ?? 'a line'} without a chain`);
  const rule = (from: number): ParsedRule => countedRule(words, from, counters);
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
