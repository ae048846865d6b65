/** Chains that another program changed, as far as they are ours: the next sync writes them again. */
import { type ChainRef, type CompileOptions, isSameChain, type Layout } from './fragment.ts';
import { isServiceChain } from './names.ts';
import type { Scope } from './rewrite.ts';
import type { Table } from './rule.ts';

/** What the kernel notifies of one table. */
export interface ForeignTouch {
  readonly table: Table;
  /** `undefined`: the table was deleted, with every chain in it. */
  readonly chain: string | undefined;
  /** Something was deleted, and not only added. */
  readonly isDeletion: boolean;
}

export class Drift implements Scope {
  readonly #layout: Layout;
  /** By `table chain`. */
  readonly #fixed: ReadonlySet<string>;
  readonly #tables = new Set<Table>();
  readonly #chains = new Set<string>();

  constructor(layout: Layout, options: CompileOptions) {
    this.#layout = layout;
    const own = layout.base(options).chains.map(({ table, name }) => ({ table, chain: name }));
    this.#fixed = new Set([...own, ...layout.sharedChains].map(keyOf));
  }

  /** Returns the names of those that concern us, for people. */
  note(touches: readonly ForeignTouch[]): readonly string[] {
    return touches.flatMap(({ table, chain, isDeletion }) => {
      if (chain === undefined) {
        this.#tables.add(table);
        return [`table ${table}`];
      }
      if (!this.#concernsUs({ table, chain }, isDeletion)) return [];
      this.add({ table, chain });
      return [`chain ${table} ${chain}`];
    });
  }

  add(chain: ChainRef): void {
    this.#chains.add(keyOf(chain));
  }

  has(table: Table, chain: string): boolean {
    return this.#tables.has(table) || this.#chains.has(keyOf({ table, chain }));
  }

  #concernsUs(ref: ChainRef, isDeletion: boolean): boolean {
    if (this.#fixed.has(keyOf(ref)) || (ref.table === 'nat' && isServiceChain(ref.chain))) return true;
    // What others add to chains that they use too is none of our business.
    const { jumps, foreignChains } = this.#layout;
    return isDeletion && [...jumps, ...foreignChains].some((each) => isSameChain(each, ref));
  }
}

function keyOf({ table, chain }: ChainRef): string {
  return `${table} ${chain}`;
}
