/** From what a service port has in the kernel to what it should have: its own chains and rules, and nothing else. */
import type { ServicePortId } from '../../../model/serviceTracker.ts';
import {
  CHAINS_PER_RESTORE,
  type ChainText,
  inSteps,
  isEmptyPiece,
  type Piece,
  type RuleText,
  type SharedChainText,
  type Step,
} from './edit.ts';
import { type ChainRef, type Fragment, isSameChain, type SharedRule, TAIL_CHAIN } from './fragment.ts';
import { printRule } from './print.ts';
import type { Table } from './rule.ts';

interface FragmentChange {
  readonly owner: ServicePortId;
  readonly before: Fragment;
  readonly after: Fragment;
}

/** filter first: a service that loses its endpoints is refused before its way is gone, as in kube-proxy. */
export const TABLES: readonly Table[] = ['filter', 'nat'];

/** Changes one by one; of each only what has to be sent is kept. */
export class Difference {
  readonly #pieces = new Map<Table, Piece[]>(TABLES.map((table) => [table, []]));

  add(change: FragmentChange): void {
    for (const [table, pieces] of this.#pieces) {
      const piece = diffFragments(table, change);
      if (!isEmptyPiece(piece)) pieces.push(piece);
    }
  }

  /** Shared chains of which so many rules go that it is quicker to write what stays. */
  thinned(sharedChains: readonly ChainRef[]): readonly ChainRef[] {
    return sharedChains.filter(({ table, chain }) => {
      let removed = 0;
      for (const { removes } of this.#pieces.get(table) ?? [])
        for (const rule of removes) if (rule.chain === chain) removed++;
      return removed > MOST_REMOVALS;
    });
  }

  /** `whole`: shared chains with all of their rules, which are written as they stand here. */
  steps(
    chainsPerRestore: number = CHAINS_PER_RESTORE,
    whole: readonly SharedChainText[] = [],
  ): readonly Step[] {
    return [...this.#pieces].flatMap(([table, pieces]) => {
      const chains = whole.filter((chain) => chain.table === table);
      return inSteps(table, withoutEdits(pieces, chains), chainsPerRestore, chains);
    });
  }
}

/**
 * To remove a rule, iptables compares it with those before it: a deletion in a chain of 5,400 rules took 4 to 9 ms at its
 * end, and writing one of its rules again 0.1 ms.
 */
const MOST_REMOVALS = 100;

function withoutEdits(pieces: readonly Piece[], chains: readonly SharedChainText[]): readonly Piece[] {
  if (chains.length === 0) return pieces;
  const names = new Set(chains.map(({ name }) => name));
  const isElsewhere = ({ chain }: RuleText): boolean => !names.has(chain);
  return pieces.map((each) => ({
    ...each,
    removes: each.removes.filter(isElsewhere),
    adds: each.adds.filter(isElsewhere),
  }));
}

function diffFragments(table: Table, { owner, before, after }: FragmentChange): Piece {
  const chainsBefore = chainTexts(before, table);
  const chainsAfter = chainTexts(after, table);
  const rulesBefore = sharedTexts(before, table);
  const rulesAfter = sharedTexts(after, table);
  return {
    owner,
    writes: [...chainsAfter.values()].filter(
      ({ name, rules }) => !sameLines(chainsBefore.get(name)?.rules, rules),
    ),
    // Callers first: emptying one frees what it calls.
    deletes: [...chainsBefore.keys()].filter((name) => !chainsAfter.has(name)).reverse(),
    // All of its rules in a chain or none: their order among each other matters, and there are only a few.
    removes: inChangedChains(rulesBefore, rulesAfter),
    // Before the tail, where the chain has one.
    adds: inChangedChains(rulesAfter, rulesBefore).map(({ chain, rule }) => {
      return { chain, rule, place: isSameChain(TAIL_CHAIN, { table, chain }) ? 'head' : 'end' };
    }),
  };
}

function chainTexts(fragment: Fragment, table: Table): ReadonlyMap<string, ChainText> {
  const chains = new Map<string, ChainText>();
  for (const chain of fragment.chains) {
    if (chain.table === table)
      chains.set(chain.name, { name: chain.name, rules: chain.rules.map(printRule) });
  }
  return chains;
}

function sharedTexts({ shared }: Fragment, table: Table): readonly RuleText[] {
  return shared
    .filter((each) => each.table === table)
    .map(({ chain, rule }) => ({ chain, rule: printRule(rule) }));
}

/** The rules of chains in which this service port's rules are not, to the letter, what they are on the other side. */
function inChangedChains(rules: readonly RuleText[], others: readonly RuleText[]): readonly RuleText[] {
  const [own, other] = [byChain(rules), byChain(others)];
  const changed = new Set<string>();
  for (const [chain, lines] of own) if (!sameLines(other.get(chain), lines)) changed.add(chain);
  return changed.size === 0 ? [] : rules.filter(({ chain }) => changed.has(chain));
}

function byChain(rules: readonly RuleText[]): ReadonlyMap<string, readonly string[]> {
  const chains = new Map<string, string[]>();
  for (const { chain, rule } of rules) {
    const lines = chains.get(chain);
    if (lines) lines.push(rule);
    else chains.set(chain, [rule]);
  }
  return chains;
}

function sameLines(a: readonly string[] | undefined, b: readonly string[]): boolean {
  return a !== undefined && a.length === b.length && a.every((line, index) => line === b[index]);
}

/** These shared chains with the rules of all service ports, and the tail; one service port at a time. */
export function* wholeChains(
  chains: readonly ChainRef[],
  fragments: Iterable<readonly [ServicePortId, Fragment]>,
  tail: readonly SharedRule[],
): Generator<void, readonly SharedChainText[]> {
  const texts = chains.map(({ table, chain }) => ({ table, name: chain, rules: new Array<string>() }));
  const add = ({ table, chain, rule }: SharedRule): void => {
    texts.find((each) => each.table === table && each.name === chain)?.rules.push(printRule(rule));
  };
  for (const [, { shared }] of fragments) {
    for (const each of shared) add(each);
    yield;
  }
  for (const each of tail) add(each);
  return texts;
}
