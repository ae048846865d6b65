/**
 * A save, read as far as it is needed.
 *
 * A large cluster's save has 300,000 rules, nearly all of them in chains that belong to one service each. Those are
 * looked at once, chain by chain; until then they are places in the text.
 */
import { isServiceChain } from './names.ts';
import { type ParsedChain, type ParsedRule, parseSave, readLine, type Tables } from './parse.ts';

interface OpenChain {
  readonly policy?: string;
  readonly rules: ParsedRule[];
}

/** Line by line. What it comes to, and what it throws, is what `parseSave` does. */
export function* readSave(text: string): Generator<void, Tables> {
  const tables = new Map<string, Map<string, OpenChain | SavedChain>>();
  let table = '';
  for (let start = 0, end = 0, line = 1; start < text.length; start = end + 1, line++) {
    end = text.indexOf('\n', start);
    if (end < 0) end = text.length;
    const first = text.charAt(start);
    if (first === '*' && table === '') {
      table = text.slice(start + 1, end).trim();
      tables.set(table, tables.get(table) ?? new Map());
    } else if (first !== '#' && start < end) {
      const chains = tables.get(table);
      if (!chains) return parseSave(text);
      const isUnderstood = takeLine(chains, { text, start, end, table, line });
      if (!isUnderstood) return parseSave(text);
      if (first === 'C') table = '';
    }
    yield;
  }
  return table === '' ? tables : parseSave(text);
}

interface Line {
  readonly text: string;
  readonly start: number;
  readonly end: number;
  readonly table: string;
  readonly line: number;
}

/** False: not what iptables prints. */
function takeLine(chains: Map<string, OpenChain | SavedChain>, at: Line): boolean {
  const chain = chains.get(chainOf(at));
  if (chain instanceof SavedChain) return chain.take(at);
  const operation = operationOf(at);
  switch (operation?.kind) {
    case 'chain': {
      const { chain: name, policy } = operation;
      if (isServiceChain(name)) chains.set(name, new SavedChain(at.text, at.table));
      else chains.set(name, policy === undefined ? { rules: [] } : { policy, rules: [] });
      return true;
    }
    case 'append':
      chain?.rules.push(operation.rule);
      return chain !== undefined;
    default:
      return operation?.kind === 'commit';
  }
}

function operationOf({ text, start, end, table, line }: Line): ReturnType<typeof readLine> {
  return readLine(text, start, end, table, line);
}

/** `[1:60] -A CHAIN …`; '' for a line that adds no rule. */
function chainOf({ text, start, end }: Line): string {
  const command = text.charAt(start) === '[' ? text.indexOf('] ', start) + 2 : start;
  if (!text.startsWith('-A ', command)) return '';
  const space = text.indexOf(' ', command + 3);
  return text.slice(command + 3, space < 0 || space > end ? end : space);
}

/** The chain of a service: the place of its rules. */
class SavedChain implements ParsedChain {
  readonly #text: string;
  readonly #table: string;
  #start = 0;
  #end = 0;
  #line = 0;

  constructor(text: string, table: string) {
    this.#text = text;
    this.#table = table;
  }

  /** False: the rules of this chain do not stand together. */
  take({ start, end, line }: Line): boolean {
    if (this.#line === 0) {
      this.#start = start;
      this.#line = line;
    } else if (start !== this.#end + 1) {
      return false;
    }
    this.#end = end;
    return true;
  }

  /** Read anew each time: whoever wants them wants them once. */
  get rules(): readonly ParsedRule[] {
    const text = this.#text;
    const rules: ParsedRule[] = [];
    for (let start = this.#start, end = 0, line = this.#line; start < this.#end; start = end + 1, line++) {
      end = text.indexOf('\n', start);
      if (end < 0) end = text.length;
      const operation = operationOf({ text, start, end, table: this.#table, line });
      if (operation?.kind === 'append') rules.push(operation.rule);
    }
    return rules;
  }
}
