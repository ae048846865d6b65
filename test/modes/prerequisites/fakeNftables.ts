/** A kernel that looks at tables as the real one does, without the modules that a test takes away. */
import type { Family } from '../../../src/model/ip.ts';
import type { TableTrial } from '../../../src/modes/prerequisites/machine.ts';
import type {
  RuleSpec,
  Statement,
  TableOperation,
  TableTransaction,
} from '../../../src/modes/nftables/rules/table.ts';

/** What an old kernel does not have, though no module brings it. */
type OldKernel = 'several ranges' | 'reject before routing' | 'update with data' | 'owners';

export interface FakeNftablesOptions {
  readonly lacks?: readonly OldKernel[];
  readonly lacksFamily?: boolean;
  /** As if there were a limit to a table. */
  readonly mostSets?: number;
  /** What the first trials are answered with, whatever they are. */
  readonly interruptions?: readonly string[];
}

export class FakeNftables {
  readonly #family: Family;
  readonly #lacks: readonly OldKernel[];
  readonly #lacksFamily: boolean;
  readonly #mostSets: number;
  readonly #interruptions: string[];
  readonly #unloaded: ReadonlySet<string>;

  constructor(family: Family, options: FakeNftablesOptions, unloaded: ReadonlySet<string>) {
    const { lacks = [], lacksFamily = false, mostSets = Infinity, interruptions = [] } = options;
    this.#family = family;
    this.#lacks = lacks;
    this.#lacksFamily = lacksFamily;
    this.#mostSets = mostSets;
    this.#interruptions = [...interruptions];
    this.#unloaded = unloaded;
  }

  /** Names the first operation that it refuses. */
  tryTable(transaction: TableTransaction): TableTrial {
    const interruption = this.#interruptions.shift();
    if (interruption !== undefined) return { state: 'refused', reason: interruption };
    const early = reachedFromPrerouting(transaction);
    const sets = new Set<string>();
    for (const operation of transaction) {
      if (operation.kind === 'addSet') sets.add(operation.set.name);
      const reason = this.#refusal(operation, sets, early);
      if (reason !== undefined) return { state: 'refused', reason, operation };
    }
    return { state: 'done' };
  }

  #refusal(
    operation: TableOperation,
    sets: ReadonlySet<string>,
    early: ReadonlySet<string>,
  ): string | undefined {
    if (this.#lacksFamily || this.#unloaded.has('nf_tables')) return 'ENOTSUP';
    switch (operation.kind) {
      case 'addTable':
        return operation.isOwned && this.#lacks.includes('owners') ? 'ENOTSUP' : undefined;
      case 'addChain':
        return operation.hook && this.#unloaded.has('nft_chain_nat') ? 'ENOENT' : undefined;
      case 'addSet': {
        const { key, ranges } = operation.set;
        if (sets.size > this.#mostSets) return 'ENFILE';
        return key.length > 1 && ranges && this.#lacks.includes('several ranges') ? 'ENOTSUP' : undefined;
      }
      case 'addRule':
        return this.#ruleRefusal(early.has(operation.chain), operation.rule);
      case 'addElements':
        return sets.has(operation.set.name) ? undefined : 'ENOENT';
      default:
        return undefined;
    }
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
function reachedFromPrerouting(transaction: TableTransaction): ReadonlySet<string> {
  const reached = new Set<string>();
  const visit = (name: string): void => {
    if (reached.has(name)) return;
    reached.add(name);
    for (const operation of transaction)
      if (operation.kind === 'addRule' && operation.chain === name)
        for (const statement of operation.rule.statements) if ('chain' in statement) visit(statement.chain);
  };
  for (const operation of transaction)
    if (operation.kind === 'addChain' && operation.hook?.point === 'prerouting') visit(operation.chain);
  return reached;
}
