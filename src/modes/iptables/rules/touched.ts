/** What another program changed in the tables of iptables, and so what has to be looked at and repaired: a part, not all. */
import { type ChainRef, type CompileOptions, isSameChain, type Layout } from './fragment.ts';
import { isServiceChain } from './names.ts';
import type { Table } from './rule.ts';

/** `added`: chains or rules were added, and none deleted. */
export type Touch = 'added' | 'deleted';

export interface TouchedTable {
  /** The table was deleted, with every chain in it. */
  readonly isGone: boolean;
  /** Packets do not come to its chains any more. */
  readonly isDormant?: boolean;
  /** Its chains may be as they should be: they are read before they are written. */
  readonly isDoubtful?: boolean;
  /** Chains, since then. */
  readonly chains: ReadonlyMap<string, Touch>;
}

export type Touched = ReadonlyMap<Table, TouchedTable>;

export class TouchedChains {
  readonly #layout: Layout;
  readonly #fixed: ReadonlySet<string>;
  readonly #gone = new Set<Table>();
  /** Some table was made dormant. */
  isDormant = false;
  readonly #chains = new Map<Table, Set<string>>();
  readonly #doubtful: ChainRef[] = [];

  constructor(layout: Layout, options: CompileOptions) {
    this.#layout = layout;
    const own = layout.base(options).chains.map(({ table, name }) => ({ table, chain: name }));
    this.#fixed = new Set([...own, ...layout.sharedChains].map(keyOf));
  }

  get isEmpty(): boolean {
    return !this.isDormant && this.#gone.size === 0 && this.#chains.size === 0;
  }

  /** Returns the names of those that concern us, for people. */
  add(touched: Touched): readonly string[] {
    const objects: string[] = [];
    for (const [table, { isGone, isDormant, isDoubtful, chains }] of touched) {
      if (isDormant) {
        this.isDormant = true;
        objects.push(dormantTable(table));
      }
      if (isGone) {
        this.#gone.add(table);
        objects.push(`table ${table}`);
      }
      for (const [chain, touch] of chains) {
        if (!this.#concernsUs({ table, chain }, touch)) continue;
        this.addChain({ table, chain });
        if (isDoubtful) this.#doubtful.push({ table, chain });
        objects.push(`chain ${table} ${chain}`);
      }
    }
    return objects;
  }

  addChain({ table, chain }: ChainRef): void {
    this.#chains.set(table, (this.#chains.get(table) ?? new Set()).add(chain));
  }

  has(table: Table, chain: string): boolean {
    return this.#gone.has(table) || (this.#chains.get(table)?.has(chain) ?? false);
  }

  /** Chains that may be right as a whole or in part, or another program's. All others are written whole, whatever they hold. */
  toRead(): readonly ChainRef[] {
    const { jumps, sharedChains, foreignChains } = this.#layout;
    const known = [...sharedChains, ...foreignChains, ...jumps].filter(({ table, chain }) =>
      this.has(table, chain),
    );
    const all = [...known, ...this.#doubtful];
    return [...new Map(all.map((ref) => [keyOf(ref), ref])).values()];
  }

  serviceChains(table: Table): Set<string> {
    return new Set([...(this.#chains.get(table) ?? [])].filter(isServiceChain));
  }

  #concernsUs(ref: ChainRef, touch: Touch): boolean {
    const { jumps, foreignChains } = this.#layout;
    if (this.#fixed.has(keyOf(ref)) || (ref.table === 'nat' && isServiceChain(ref.chain))) return true;
    // In chains that others use too, their rules are none of our business.
    if (touch === 'added') return false;
    return [...jumps, ...foreignChains].some((each) => isSameChain(each, ref));
  }
}

/** For people. */
export function dormantTable(table: Table): string {
  return `table ${table} (made dormant)`;
}

function keyOf({ table, chain }: ChainRef): string {
  return `${table} ${chain}`;
}
