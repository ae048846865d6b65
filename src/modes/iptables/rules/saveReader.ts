/**
 * Reads a save while it arrives, and keeps no more of it than is needed.
 *
 * A large cluster's save is 50 MB of text, nearly all of it chains that belong to one service each and are as they
 * should be. Whoever knows how they should be tells the reader, which then forgets the rules of those that are.
 */
import { isServiceChain } from './names.ts';
import { ruleKey } from './print.ts';
import { type ParsedChain, type ParsedRule, ParseError, readLine, type Tables } from './parse.ts';
import type { Rule } from './rule.ts';

/** The digests of chains that are wanted. */
export type WantedChains = ReadonlySet<number>;

/** Stands for a chain whose rules are those that are wanted. */
export const IN_PLACE: ParsedChain = { rules: [] };

const EMPTY: ParsedChain = { rules: [] };

export function digestChain(name: string, rules: readonly Rule[]): number {
  return digest([name, ...rules.map(ruleKey)]);
}

/** Whether chains of services are spoken of: then it pays to know how they should be. */
export function mentionsServices(text: string): boolean {
  return /^:KUBE-(?:SVC|SEP)-/m.test(text);
}

export class SaveReader {
  /** May be set late: it only saves memory. */
  wanted: WantedChains = new Set();
  readonly #tables = new Map<string, Map<string, ParsedChain>>();
  #table = '';
  #line = 0;
  /** The chain whose rules are being read; in a save they stand together. */
  #chain = '';
  #rules: ParsedRule[] = [];
  /** A line that has not ended yet. */
  #rest = '';

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
    const operation = readLine(text, start, end, this.#table, this.#line);
    switch (operation?.kind) {
      case undefined:
        return;
      case 'chain': {
        const { chain, policy } = operation;
        this.#chains.set(chain, policy === undefined ? EMPTY : { policy, rules: [] });
        return;
      }
      case 'append':
        this.#append(operation.chain, operation.rule);
        return;
      case 'commit':
        this.#closeChain();
        this.#table = '';
        return;
      default:
        throw this.#error('a save holds chains and appended rules only');
    }
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
    const isInPlace = isNew && isServiceChain(name) && this.wanted.has(digestChain(name, rules));
    this.#chains.set(name, isInPlace ? IN_PLACE : { ...before, rules: [...before.rules, ...rules] });
  }

  #error(reason: string): ParseError {
    return new ParseError(this.#table, this.#line, reason);
  }
}

/**
 * Lines as one number of 53 bits: two different lists have the same one about never (once in 9,000,000,000,000,000).
 * Nobody who could choose the lines gains by it; it saves memory where 100,000 chains are compared.
 */
const NEWLINE = 10;

export function digest(lines: Iterable<string>): number {
  let high = 0xdeadbeef;
  let low = 0x41c6ce57;
  const take = (code: number): void => {
    high = Math.imul(high ^ code, 2_654_435_761);
    low = Math.imul(low ^ code, 1_597_334_677);
  };
  for (const line of lines) {
    for (let index = 0; index < line.length; index++) take(line.charCodeAt(index));
    take(NEWLINE);
  }
  high = Math.imul(high ^ (high >>> 16), 2_246_822_507) ^ Math.imul(low ^ (low >>> 13), 3_266_489_909);
  low = Math.imul(low ^ (low >>> 16), 2_246_822_507) ^ Math.imul(high ^ (high >>> 13), 3_266_489_909);
  return 4_294_967_296 * (low & 0x1f_ffff) + (high >>> 0);
}
