/** A kernel that looks at tables as the real one does, without the modules that a test takes away. */
import type { ChainSpec, RuleSpec, Statement, TableSet } from '../../../src/modes/nftables/rules/table.ts';
import type { NftTrial, TrialTable } from '../../../src/modes/nftables/trialTable.ts';
import type { Family } from '../../../src/model/ip.ts';

/** What an old kernel does not have, though no module brings it. */
type OldKernel =
  /** It takes them, and forgets. */
  'counters' | 'several ranges' | 'reject before routing' | 'update with data' | 'owners';

export interface FakeNftablesOptions {
  readonly lacks?: readonly OldKernel[];
  /** As if there were a limit to a table. */
  readonly mostSets?: number;
  /** What the first trials are answered with, whatever they are. */
  readonly interruptions?: readonly string[];
}

export class FakeNftables {
  readonly #family: Family;
  readonly #lacks: readonly OldKernel[];
  readonly #mostSets: number;
  readonly #interruptions: string[];
  readonly #unloaded: ReadonlySet<string>;

  constructor(family: Family, options: FakeNftablesOptions, unloaded: ReadonlySet<string>) {
    const { lacks = [], mostSets = Infinity, interruptions = [] } = options;
    this.#family = family;
    this.#lacks = lacks;
    this.#mostSets = mostSets;
    this.#interruptions = [...interruptions];
    this.#unloaded = unloaded;
  }

  tryTable(table: TrialTable): NftTrial {
    const reason =
      this.#interruptions.shift() ??
      this.#refusal(table) ??
      (table.sets.length > this.#mostSets ? 'ENFILE' : undefined);
    if (reason !== undefined) return { state: 'refused', reason };
    const forgotten = table.sets.filter(({ counts }) => counts === true && this.#lacks.includes('counters'));
    return { state: 'done', different: forgotten.map(({ name }) => name) };
  }

  #refusal({ sets, chains, elements, isOwned }: TrialTable): string | undefined {
    if (isOwned && this.#lacks.includes('owners')) return 'ENOTSUP';
    if (this.#unloaded.has('nf_tables')) return 'ENOTSUP';
    if (chains.some(({ hook }) => hook) && this.#unloaded.has('nft_chain_nat')) return 'ENOENT';
    const names = new Set(sets.map(({ name }) => name));
    if (elements.some(({ set }) => !names.has(set))) return 'ENOENT';
    const early = reachedFromPrerouting(chains);
    const all = chains.flatMap(({ name, rules }) =>
      rules.map((rule) => ({ isEarly: early.has(name), rule })),
    );
    return (
      sets.map((set) => this.#setRefusal(set)).find((reason) => reason !== undefined) ??
      all.map(({ isEarly, rule }) => this.#ruleRefusal(isEarly, rule)).find((reason) => reason !== undefined)
    );
  }

  #setRefusal({ key, ranges }: TableSet): string | undefined {
    return key.length > 1 && ranges && this.#lacks.includes('several ranges') ? 'ENOTSUP' : undefined;
  }

  #ruleRefusal(isEarly: boolean, { statements }: RuleSpec): string | undefined {
    for (const statement of statements) {
      const modules = this.#modulesOf(statement);
      if (modules.some((module) => this.#unloaded.has(module))) return 'ENOENT';
      if (statement.kind === 'learn' && this.#lacks.includes('update with data')) return 'EINVAL';
      if (statement.kind !== 'reject' || !this.#lacks.includes('reject before routing')) continue;
      if (isEarly) return 'ENOTSUP';
    }
    return undefined;
  }

  #modulesOf(statement: Statement): readonly string[] {
    const number = this.#family === 'IPv4' ? 4 : 6;
    switch (statement.kind) {
      case 'addressType':
        return [`nft_fib_ipv${number}`];
      case 'reject':
        return [`nft_reject_ipv${number}`];
      case 'masquerade':
        return ['nft_masq'];
      case 'isRewritten':
      case 'learn':
        return ['nft_ct'];
      case 'dnatByMap':
        return ['nft_nat', ...(statement.key.some((part) => typeof part === 'object') ? ['nft_numgen'] : [])];
      default:
        return [];
    }
  }
}

/** Names of chains, by jumps alone. */
function reachedFromPrerouting(chains: readonly ChainSpec[]): ReadonlySet<string> {
  const reached = new Set<string>();
  const visit = (name: string): void => {
    if (reached.has(name)) return;
    reached.add(name);
    for (const { rules } of chains.filter((chain) => chain.name === name))
      for (const { statements } of rules)
        for (const statement of statements) if ('chain' in statement) visit(statement.chain);
  };
  for (const { name, hook } of chains) if (hook?.point === 'prerouting') visit(name);
  return reached;
}
