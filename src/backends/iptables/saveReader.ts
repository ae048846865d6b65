/**
 * Reads a save while it arrives, and keeps no more of it than is needed.
 *
 * A large cluster's save is 50 MB of text, nearly all of it chains that belong to one service each and are as they
 * should be. Whoever knows how they should be tells the reader, which then forgets the rules of those that are.
 */
import { digest } from './digest.ts';
import { isServiceChain } from './names.ts';
import { ruleKey } from './normalise.ts';
import { type ParsedChain, ParseError, type ParsedRule, readLine, type Tables } from './parse.ts';
import type { Rule } from './rule.ts';

/** By name of the chain: the digest of its rules. */
export type WantedChains = ReadonlyMap<string, number>;

/** Stands for a chain whose rules are those that are wanted. */
export const IN_PLACE: ParsedChain = { rules: [] };

export function digestRules(rules: readonly Rule[]): number {
  return digest(rules.map(ruleKey));
}

/** Whether chains of services are spoken of: then it pays to know how they should be. */
export function mentionsServices(text: string): boolean {
  return /^:KUBE-(?:SVC|SEP)-/m.test(text);
}

interface OpenChain {
  readonly policy?: string;
  readonly rules: ParsedRule[];
}

export class SaveReader {
  /** May be set late: it only saves memory. */
  wanted: WantedChains = new Map();
  readonly #tables = new Map<string, Map<string, OpenChain | typeof IN_PLACE>>();
  #table = '';
  #line = 0;
  /** The chain whose rules are being read; in a save they stand together. */
  #chain = '';
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
    if (this.#table !== '') throw new ParseError(this.#table, this.#line, 'COMMIT expected');
    return this.#tables;
  }

  #takeLine(text: string, start: number, end: number): void {
    this.#line++;
    const first = text.charAt(start);
    if (first === '#' || start === end) return;
    if (first === '*') {
      if (this.#table !== '') throw new ParseError(this.#table, this.#line, 'a table begins before COMMIT');
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
        this.#chains.set(chain, policy === undefined ? { rules: [] } : { policy, rules: [] });
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
        throw new ParseError(this.#table, this.#line, 'a save holds chains and appended rules only');
    }
  }

  get #chains(): Map<string, OpenChain | typeof IN_PLACE> {
    return this.#tables.get(this.#table) ?? new Map();
  }

  #append(name: string, rule: ParsedRule): void {
    if (name !== this.#chain) this.#closeChain();
    this.#chain = name;
    const chain = this.#chains.get(name);
    if (!chain) throw new ParseError(this.#table, this.#line, `a rule of the undeclared chain ${name}`);
    if (isOpen(chain)) chain.rules.push(rule);
    // It goes on after other chains, as in no save of iptables: whatever it is, it is not what is wanted.
    else this.#chains.set(name, { rules: [rule] });
  }

  #closeChain(): void {
    const name = this.#chain;
    this.#chain = '';
    if (!isServiceChain(name)) return;
    const chain = this.#chains.get(name);
    const wanted = this.wanted.get(name);
    if (chain && wanted !== undefined && digestRules(chain.rules) === wanted)
      this.#chains.set(name, IN_PLACE);
  }
}

function isOpen(chain: OpenChain | typeof IN_PLACE): chain is OpenChain {
  return chain !== IN_PLACE;
}
