/**
 * From what the kernel really has to what it should have. At a cold start that is everything; after a restart or
 * when another program changed our chains, it is the difference.
 *
 * Leaves come first and the way in comes last, so that no packet ever meets a half-written service. Services are
 * compiled while they are sent, some hundred chains at a time, so that a large cluster's rules are never all in
 * memory at once.
 */
import type { ServicePortId } from '../../../model/serviceTracker.ts';
import {
  CHAINS_PER_RESTORE,
  type ChainWrite,
  inChunks,
  isEmptyPiece,
  isSameList,
  type Piece,
  piece,
  type Step,
} from './edit.ts';
import { editSharedChain, foreignRules, jumpRules, type OwnedRules } from './chainEdits.ts';
import {
  type BaseFragment,
  type ChainRef,
  type CompileOptions,
  type Fragment,
  isSameChain,
  type Layout,
  type OwnChain,
  type SharedRule,
} from './fragment.ts';
import { garbageBatches, ownChains } from './cleanup.ts';
import { ruleKey } from './print.ts';
import { type Counters, IN_PLACE, type ParsedChain, type ParsedRule, type Tables } from './parse.ts';
import { type Rule, type Table, TABLES } from './rule.ts';
import type { TouchedChains } from './touched.ts';

interface Desired {
  readonly layout: Layout;
  readonly options: CompileOptions;
  /** Read once, one by one. */
  readonly fragments: Iterable<readonly [ServicePortId, Fragment]>;
  /** Only these are looked at; unset: everything. The state then has those of them that had to be read. */
  readonly scope?: TouchedChains | undefined;
}

export interface FullStep extends Step {
  /** Deletes chains that nothing needs any more. */
  readonly isGarbage?: true;
}

interface StepLimits {
  readonly chainsPerRestore?: number | undefined;
}

/**
 * What to do, in order; each step assumes that the ones before it are done. First the chains that are missing or empty,
 * without which the others cannot be written; then those of services; then rules in shared chains and the jumps into
 * them, by which a service begins to work; then garbage. Between two services there is nothing to do: a point at which
 * other work can have its turn.
 */
export function* fullSteps(
  state: Tables,
  desired: Desired,
  limits: StepLimits = {},
): Generator<FullStep | undefined> {
  yield* new FullSync(state, desired).steps(limits);
}

class FullSync {
  readonly #state: Tables;
  readonly #desired: Desired;
  readonly #base: BaseFragment;
  readonly #ids = new Set<ServicePortId>();
  /** Chains of ours that no service has needed so far. */
  readonly #unneeded: ReadonlyMap<Table, Set<string>>;
  /** By `table chain`. */
  readonly #shared = new Map<string, OwnedRules[]>();

  constructor(state: Tables, desired: Desired) {
    const { layout, options, scope } = desired;
    this.#state = state;
    this.#desired = desired;
    this.#base = layout.base(options);
    this.#unneeded = new Map(
      TABLES.map((table) => [table, scope ? scope.serviceChains(table) : ownChains(state, table)]),
    );
    for (const { table, name } of this.#base.chains) this.#unneeded.get(table)?.delete(name);
    for (const { table, chain } of [...layout.sharedChains, ...layout.foreignChains])
      this.#unneeded.get(table)?.delete(chain);
  }

  *steps({ chainsPerRestore = CHAINS_PER_RESTORE }: StepLimits): Generator<FullStep | undefined> {
    for (const table of TABLES) yield* step(table, [this.#foundation(table)]);
    yield* this.#services(chainsPerRestore);
    for (const table of TABLES) {
      yield undefined;
      yield* step(table, this.#entries(table));
    }
    for (const table of TABLES) {
      yield undefined;
      for (const batch of garbageBatches(this.#unneeded.get(table) ?? new Set()))
        for (const each of inChunks(table, batch, chainsPerRestore)) yield { ...each, isGarbage: true };
    }
  }

  /** Every chain that only one service uses is in nat. */
  *#services(chainsPerRestore: number): Generator<FullStep | undefined> {
    let pieces: Piece[] = [];
    for (const [owner, fragment] of this.#desired.fragments) {
      this.#noteService(owner, fragment);
      for (const chain of fragment.chains) {
        if (!this.#isInScope(chain.table, chain.name)) continue;
        for (const write of this.#rewrite(chain)) pieces.push(piece(owner, { writes: [write] }));
        if (pieces.length < chainsPerRestore) continue;
        yield { table: 'nat', pieces };
        pieces = [];
      }
      yield undefined;
    }
    if (pieces.length > 0) yield { table: 'nat', pieces };
  }

  #isInScope(table: Table, chain: string): boolean {
    return this.#desired.scope?.has(table, chain) ?? true;
  }

  #existing(table: Table, chain: string): ParsedChain | undefined {
    return this.#state.get(table)?.get(chain);
  }

  #hasRules(table: Table, chain: string): boolean {
    return (this.#existing(table, chain)?.rules.length ?? 0) > 0;
  }

  #noteService(owner: ServicePortId, { shared, chains }: Fragment): void {
    this.#ids.add(owner);
    for (const rule of shared) if (this.#isInScope(rule.table, rule.chain)) this.#addShared(owner, rule);
    for (const { table, name } of chains)
      if (this.#isInScope(table, name)) this.#unneeded.get(table)?.delete(name);
  }

  #addShared(owner: ServicePortId, { table, chain, rule }: SharedRule): void {
    const key = `${table} ${chain}`;
    let owners = this.#shared.get(key);
    if (!owners) this.#shared.set(key, (owners = []));
    let owned = owners.at(-1);
    if (owned?.owner !== owner) owners.push((owned = { owner, rules: [], keys: [] }));
    owned.rules.push(rule);
    if (this.#hasRules(table, chain)) owned.keys.push(ruleKey(rule));
  }

  #foundation(table: Table): Piece {
    const { layout } = this.#desired;
    const empties = [...layout.sharedChains, ...layout.foreignChains]
      .filter((ref) => ref.table === table && this.#isInScope(table, ref.chain))
      .filter(({ chain }) => !this.#existing(table, chain))
      .map(({ chain }): ChainWrite => ({ name: chain, rules: [] }));
    return piece(undefined, { writes: [...empties, ...this.#baseWrites(table, false)] });
  }

  /**
   * A fixed chain with rules, perhaps of another mode or with another mark, is replaced together with the rules that lead
   * packets to services: in between, what one half marks the other would not masquerade.
   */
  #baseWrites(table: Table, isInUse: boolean): readonly ChainWrite[] {
    return this.#base.chains
      .filter((chain) => chain.table === table && this.#isInScope(table, chain.name))
      .filter(({ name }) => this.#hasRules(table, name) === isInUse)
      .flatMap((chain) => this.#rewrite(chain));
  }

  /** The chain as it has to be written, or nothing if the kernel has it so. Counters of rules that stay are kept. */
  #rewrite({ table, name, rules }: OwnChain): readonly ChainWrite[] {
    const existing = this.#existing(table, name);
    if (!existing) return [{ name, rules }];
    if (existing === IN_PLACE) return [];
    const keys = rules.map(ruleKey);
    const existingKeys = existing.rules.map(ruleKey);
    if (isSameList(keys, existingKeys)) return [];
    const counters = new Map(existing.rules.map((rule, index) => [existingKeys[index], rule.counters]));
    return [{ name, rules: rules.map((rule, index) => withCounters(rule, counters.get(keys[index]))) }];
  }

  #entries(table: Table): readonly Piece[] {
    const { layout, options } = this.#desired;
    const { tail, foreign } = this.#base;
    const isTouched = ({ chain }: ChainRef): boolean => this.#isInScope(table, chain);
    const shared = layout.sharedChains
      .filter((ref) => ref.table === table && isTouched(ref))
      .flatMap(({ chain }) =>
        editSharedChain(this.#existing(table, chain)?.rules ?? [], {
          chain,
          bodies: this.#shared.get(`${table} ${chain}`) ?? [],
          tail: tail.filter((each) => isSameChain(each, { table, chain })).map(({ rule }) => rule),
          isKnown: (id) => this.#ids.has(id),
        }),
      );
    return [
      piece(undefined, { writes: this.#baseWrites(table, true) }),
      ...shared,
      foreignRules(this.#state, foreign.filter(isTouched), options, table),
      jumpRules(this.#state, layout.jumps.filter(isTouched), table),
    ];
  }
}

function* step(table: Table, pieces: readonly Piece[]): Generator<Step> {
  const wanted = pieces.filter((each) => !isEmptyPiece(each));
  if (wanted.length > 0) yield { table, pieces: wanted };
}

function withCounters(rule: Rule, counters: Counters | undefined): ParsedRule {
  return counters ? { ...rule, counters } : rule;
}
