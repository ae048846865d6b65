/** What `iptables-restore` takes, line by line, as operations. */
import { TextRule } from '../../../../src/modes/iptables/rules/textRule.ts';
import { parseWords, tokenize } from '../../../../src/modes/iptables/rules/words.ts';

export class ParseError extends Error {
  override readonly name = 'ParseError';
  readonly table: string;
  readonly line: number;
  readonly reason: string;

  constructor(table: string, line: number, reason: string) {
    super(`iptables text, table ${table || '(none)'}, line ${line}: ${reason}`);
    this.table = table;
    this.line = line;
    this.reason = reason;
  }
}

export type RestoreOperation = { readonly table: string; readonly line: number } & (
  | { readonly kind: 'chain'; readonly chain: string; readonly policy?: string }
  | { readonly kind: 'append'; readonly chain: string; readonly rule: TextRule }
  /** `position` counts from 1. */
  | { readonly kind: 'insert'; readonly chain: string; readonly position: number; readonly rule: TextRule }
  | { readonly kind: 'delete'; readonly chain: string; readonly rule: TextRule }
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
  const words = tokenize(text.slice(start, end));
  if (!words) throw new ParseError(table, line, 'a quote stays open');
  const first = words[0];
  if (first === undefined) return undefined;
  if (table === '') throw new ParseError(table, line, 'a line before any table');
  try {
    if (first === 'COMMIT') return { table, line, kind: 'commit' };
    if (first.startsWith(':')) {
      return { table, line, kind: 'chain', ...chainDeclaration(words) };
    }
    return ruleOperation(words, text.slice(start, end), table, line);
  } catch (error) {
    throw new ParseError(table, line, error instanceof Error ? error.message : String(error));
  }
}

function ruleOperation(
  words: readonly string[],
  text: string,
  table: string,
  line: number,
): RestoreOperation {
  const counters = packetsIn(words[0] ?? '');
  const at = counters === undefined ? 0 : 1;
  const command = words[at];
  const chain = words[at + 1];
  if (chain === undefined) throw new Error(`${command ?? 'a line'} without a chain`);
  const rule = (from: number): TextRule => {
    checkWords(words.slice(from));
    const rest = text.split(/ +/).slice(from).join(' ');
    return new TextRule(rest, { table, name: chain }, 0, counters);
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

/** `:KUBE-SERVICES - [0:0]` */
function chainDeclaration(words: readonly string[]): { readonly chain: string; readonly policy?: string } {
  const [name = '', policy] = words;
  if (name === ':') throw new Error('a chain without a name');
  if (policy === undefined) throw new Error(`chain ${name} without a policy or "-"`);
  return policy === '-' ? { chain: name.slice(1) } : { chain: name.slice(1), policy };
}

/** `[12:345]` */
function packetsIn(word: string): number | undefined {
  if (!word.startsWith('[')) return undefined;
  const packets = /^\[(\d+):\d+\]$/.exec(word)?.[1];
  if (packets === undefined) throw new Error(`not counters: ${word}`);
  return Number(packets);
}

/** What iptables itself refuses. */
function checkWords(words: readonly string[]): void {
  const parsed = parseWords(words);
  if (!parsed) throw new Error('more than one target');
  if (words.at(-1) === '!') throw new Error('a negation of nothing');
  for (const { name, values } of parsed.options)
    if (/^-[sdipm]$|^--comment$/.test(name) && values.length !== 1)
      throw new Error(`${name} needs an argument`);
  if (parsed.target.length === 1) throw new Error(`${parsed.target[0]} needs an argument`);
}

function parsePosition(word: string | undefined): number | undefined {
  return word !== undefined && /^\d+$/.test(word) ? Number(word) : undefined;
}
