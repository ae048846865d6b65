/**
 * Writes chains whole, from the plan: all of them at a start and in doubt, or those that another program changed.
 *
 * Chains of services come first and the rules that lead to them last, so that no packet meets a half-written service.
 * Services are compiled while they are sent, some hundred chains at a time, so that a large cluster's rules are never all
 * in memory at once.
 */
import type { ServicePortId } from '../../../model/serviceTracker.ts';
import { garbageBatches, ownChains } from './cleanup.ts';
import { CHAINS_PER_RESTORE, inChunks, isEmptyPiece, type Piece, piece, type Step } from './edit.ts';
import {
  type BaseFragment,
  type ChainRef,
  type CompileOptions,
  type Fragment,
  isSameChain,
  type Layout,
  type SharedRule,
} from './fragment.ts';
import { type ChainNames, isServiceChain } from './names.ts';
import { jumpOf, type Table, TABLES } from './rule.ts';

/** Some chains; unset where it is optional: all. */
export interface Scope {
  has(table: Table, chain: string): boolean;
}

interface Wanted {
  readonly layout: Layout;
  readonly options: CompileOptions;
  /** Read once, one by one. */
  readonly fragments: Iterable<readonly [ServicePortId, Fragment]>;
  /** Chains that the kernel has. */
  readonly names: ChainNames;
  readonly scope?: Scope | undefined;
  /** The kernel refused chains of this service port: the others go on, and it keeps what it has. */
  readonly isRefused: (id: ServicePortId) => boolean;
  readonly chainsPerRestore?: number | undefined;
}

export class Rewrite {
  readonly #wanted: Wanted;
  readonly #base: BaseFragment;
  /** Rules in shared chains, of service ports that were compiled. */
  readonly #shared: { readonly owner: ServicePortId; readonly rule: SharedRule }[] = [];
  /** Chains of ours that no service port has needed so far. */
  readonly #unneeded: ReadonlyMap<Table, Set<string>>;

  constructor(wanted: Wanted) {
    const { layout, options, names } = wanted;
    this.#wanted = wanted;
    this.#base = layout.base(options);
    this.#unneeded = new Map(TABLES.map((table) => [table, ownChains(names, table)]));
    for (const { table, name } of this.#base.chains) this.#unneeded.get(table)?.delete(name);
    for (const { table, chain } of [...layout.sharedChains, ...layout.foreignChains])
      this.#unneeded.get(table)?.delete(chain);
  }

  /** Chains that others jump to and that are missing. */
  *foundation(): Generator<Step> {
    const { layout } = this.#wanted;
    for (const table of TABLES) {
      const empty = [...layout.sharedChains, ...layout.foreignChains]
        .filter((ref) => ref.table === table && this.#isInScope(table, ref.chain))
        .filter(({ chain }) => !this.#exists(table, chain))
        .map(({ chain }) => ({ name: chain, rules: [] }));
      yield* step(table, [piece(undefined, { writes: [...empty, ...this.#baseChains(table, false)] })]);
    }
  }

  /** Chains of one service port each. `undefined` between two: others may have their turn. Every such chain is in nat. */
  *services(): Generator<Step | undefined> {
    const { fragments, isRefused, chainsPerRestore = CHAINS_PER_RESTORE } = this.#wanted;
    let pieces: Piece[] = [];
    for (const [owner, { chains, shared }] of fragments) {
      for (const rule of shared)
        if (this.#isInScope(rule.table, rule.chain)) this.#shared.push({ owner, rule });
      for (const { table, name, rules } of chains) {
        this.#unneeded.get(table)?.delete(name);
        if (!this.#isInScope(table, name) || isRefused(owner)) continue;
        pieces.push(piece(owner, { writes: [{ name, rules }] }));
        if (pieces.length < chainsPerRestore) continue;
        yield { table: 'nat', pieces };
        pieces = [];
      }
      yield undefined;
    }
    yield* step('nat', pieces);
  }

  /**
   * Chains that lead to services: each table's at once. A fixed chain that is in use, perhaps of another mode or with another
   * mark, is replaced together with them: in between, what one half marks the other would not masquerade.
   */
  *entries(): Generator<Step> {
    const { layout, isRefused } = this.#wanted;
    for (const table of TABLES) {
      const shared = layout.sharedChains.filter(
        (ref) => ref.table === table && this.#isInScope(table, ref.chain),
      );
      yield* step(table, [
        piece(undefined, {
          writes: [
            ...this.#baseChains(table, true),
            ...shared
              .filter(({ chain }) => this.#exists(table, chain))
              .map(({ chain }) => ({ name: chain, rules: [] })),
          ],
        }),
        ...shared.flatMap((ref) => [
          ...this.#shared
            .filter(
              ({ owner, rule }) =>
                isSameChain(rule, ref) && (!isRefused(owner) || this.#leadsSomewhere(rule)),
            )
            .map(({ owner, rule }) => piece(owner, { adds: [{ ...rule, place: 'end' }] })),
          piece(undefined, {
            adds: this.#base.tail
              .filter((rule) => isSameChain(rule, ref))
              .map((rule) => ({ ...rule, place: 'end' as const })),
          }),
        ]),
      ]);
    }
  }

  /** Deletes chains that nothing needs any more, in scope or not, after nothing jumps to them. */
  *garbage(): Generator<Step> {
    const { chainsPerRestore } = this.#wanted;
    for (const table of TABLES)
      for (const batch of garbageBatches(this.#unneeded.get(table) ?? new Set()))
        yield* inChunks(table, batch, chainsPerRestore);
  }

  #baseChains(table: Table, isInUse: boolean): Piece['writes'] {
    return this.#base.chains
      .filter((chain) => chain.table === table && this.#isInScope(table, chain.name))
      .filter(({ name }) => this.#exists(table, name) === isInUse);
  }

  /** The chain of a refused service port is there from before. */
  #leadsSomewhere({ table, rule }: SharedRule): boolean {
    const next = jumpOf(rule);
    return next === undefined || this.#exists(table, next);
  }

  #exists(table: Table, chain: string): boolean {
    return this.#wanted.names.get(table)?.has(chain) ?? false;
  }

  #isInScope(table: Table, chain: string): boolean {
    return this.#wanted.scope?.has(table, chain) ?? true;
  }
}

function* step(table: Table, pieces: readonly Piece[]): Generator<Step> {
  const wanted = pieces.filter((each) => !isEmptyPiece(each));
  if (wanted.length > 0) yield { table, pieces: wanted };
}

/** What the kernel notifies of one table. */
export interface ForeignTouch {
  readonly table: Table;
  /** `undefined`: the table was deleted, with every chain in it. */
  readonly chain: string | undefined;
  /** Something was deleted, and not only added. */
  readonly isDeletion: boolean;
}

/** Chains that another program changed, as far as they are ours: the next sync writes them again. */
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
