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
  type ChainText,
  inChunks,
  isEmptyPiece,
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
import { TABLES } from './rule.ts';
import { printRule, ruleKey } from './print.ts';
import { IN_PLACE, type ParsedRule, type Tables } from './parse.ts';
import type { Rule, Table } from './rule.ts';
import type { TouchedChains } from './touched.ts';

interface Desired {
  readonly layout: Layout;
  readonly options: CompileOptions;
  readonly base: BaseFragment;
  /** Read once, one by one. */
  readonly fragments: Iterable<readonly [ServicePortId, Fragment]>;
  /** Only these are looked at; unset: everything. The state then has those of them that had to be read. */
  readonly scope?: TouchedChains | undefined;
}

interface FullStep extends Step {
  /** Deletes chains that nothing needs any more. */
  readonly isGarbage?: true;
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
  chainsPerRestore: number = CHAINS_PER_RESTORE,
): Generator<FullStep | undefined> {
  for (const table of TABLES) {
    const pieces = foundation(state, desired, table);
    if (pieces.length > 0) yield { table, pieces };
  }
  const seen = new Services(state, desired);
  const pieces: Piece[] = [];
  for (const [owner, fragment] of desired.fragments) {
    pieces.push(...seen.read(owner, fragment));
    while (pieces.length >= chainsPerRestore) {
      yield { table: 'nat', pieces: pieces.splice(0, chainsPerRestore) };
    }
    yield undefined;
  }
  if (pieces.length > 0) yield { table: 'nat', pieces };
  for (const table of TABLES) {
    yield undefined;
    const pieces = entries(state, desired, seen, table);
    if (pieces.length > 0) yield { table, pieces };
  }
  for (const table of TABLES) {
    yield undefined;
    for (const batch of garbageBatches(seen.unneeded(table))) {
      for (const step of inChunks(table, batch, chainsPerRestore)) yield { ...step, isGarbage: true };
    }
  }
}

/** What is kept of the services while they pass. */
class Services {
  readonly ids = new Set<ServicePortId>();
  readonly #state: Tables;
  readonly #scope: TouchedChains | undefined;
  /** Chains of ours that no service has needed so far. */
  readonly #unneeded: ReadonlyMap<Table, Set<string>>;
  /** By `table chain`. */
  readonly #shared = new Map<string, OwnedRules[]>();

  constructor(state: Tables, { layout, base, scope }: Desired) {
    this.#state = state;
    this.#scope = scope;
    this.#unneeded = new Map(
      TABLES.map((table) => [table, scope ? scope.serviceChains(table) : ownChains(state, table)]),
    );
    for (const { table, name } of base.chains) this.#unneeded.get(table)?.delete(name);
    for (const { table, chain } of [...layout.sharedChains, ...layout.foreignChains])
      this.#unneeded.get(table)?.delete(chain);
  }

  unneeded(table: Table): ReadonlySet<string> {
    return this.#unneeded.get(table) ?? new Set();
  }

  sharedRules(table: Table, chain: string): readonly OwnedRules[] {
    return this.#shared.get(`${table} ${chain}`) ?? [];
  }

  /** The chains to write; every chain that only one service uses is in nat. */
  *read(owner: ServicePortId, fragment: Fragment): Generator<Piece> {
    this.ids.add(owner);
    for (const rule of fragment.shared)
      if (isInScope(this.#scope, rule.table, rule.chain)) this.#addShared(owner, rule);
    for (const chain of fragment.chains) {
      if (!isInScope(this.#scope, chain.table, chain.name)) continue;
      this.#unneeded.get(chain.table)?.delete(chain.name);
      const writes = rewrite(this.#state, chain);
      if (writes.length > 0) yield piece(owner, { writes });
    }
  }

  #addShared(owner: ServicePortId, { table, chain, rule }: SharedRule): void {
    const key = `${table} ${chain}`;
    let owners = this.#shared.get(key);
    if (!owners) this.#shared.set(key, (owners = []));
    let owned = owners.at(-1);
    if (owned?.owner !== owner) owners.push((owned = { owner, texts: [], keys: [] }));
    owned.texts.push(printRule(rule));
    if (hasRules(this.#state, table, chain)) owned.keys.push(ruleKey(rule));
  }
}

function isInScope(scope: TouchedChains | undefined, table: Table, chain: string): boolean {
  return scope?.has(table, chain) ?? true;
}

function foundation(state: Tables, desired: Desired, table: Table): readonly Piece[] {
  const { layout, scope } = desired;
  const empties = [...layout.sharedChains, ...layout.foreignChains]
    .filter((ref) => ref.table === table && isInScope(scope, table, ref.chain))
    .filter(({ chain }) => !state.get(table)?.has(chain))
    .map(({ chain }): ChainText => ({ name: chain, rules: [] }));
  return nonEmpty([piece(undefined, { writes: [...empties, ...baseWrites(state, desired, table, false)] })]);
}

/**
 * A fixed chain with rules, perhaps of another mode or with another mark, is replaced together with the rules that lead
 * packets to services: in between, what one half marks the other would not masquerade.
 */
function baseWrites(
  state: Tables,
  { base, scope }: Desired,
  table: Table,
  isInUse: boolean,
): readonly ChainText[] {
  return base.chains
    .filter((chain) => chain.table === table && isInScope(scope, table, chain.name))
    .filter(({ name }) => hasRules(state, table, name) === isInUse)
    .flatMap((chain) => rewrite(state, chain));
}

function hasRules(state: Tables, table: Table, chain: string): boolean {
  return (state.get(table)?.get(chain)?.rules.length ?? 0) > 0;
}

/** The chain as it has to be written, or nothing if the kernel has it so. Counters of rules that stay are kept. */
function rewrite(state: Tables, { table, name, rules }: OwnChain): readonly ChainText[] {
  const existing = state.get(table)?.get(name);
  if (!existing) return [{ name, rules: rules.map(printRule) }];
  if (existing === IN_PLACE) return [];
  const keys = rules.map(ruleKey);
  const existingKeys = existing.rules.map(ruleKey);
  if (keys.length === existingKeys.length && keys.every((key, index) => key === existingKeys[index])) {
    return [];
  }
  const counted = new Map(existing.rules.map((rule, index) => [existingKeys[index], rule]));
  return [{ name, rules: rules.map((rule, index) => withCounters(rule, counted.get(keys[index]))) }];
}

function withCounters(rule: Rule, existing: ParsedRule | undefined): string {
  const text = printRule(rule);
  const counters = existing?.counters;
  return counters ? `[${counters.packets}:${counters.bytes}] ${text}` : text;
}

function entries(state: Tables, desired: Desired, seen: Services, table: Table): readonly Piece[] {
  const { layout, base, options, scope } = desired;
  const isTouched = ({ chain }: ChainRef): boolean => isInScope(scope, table, chain);
  const shared = layout.sharedChains
    .filter((ref) => ref.table === table && isTouched(ref))
    .flatMap(({ chain }) =>
      editSharedChain(state.get(table)?.get(chain)?.rules ?? [], {
        chain,
        bodies: seen.sharedRules(table, chain),
        tail: base.tail.filter((tail) => isSameChain(tail, { table, chain })).map(({ rule }) => rule),
        isKnown: (id) => seen.ids.has(id),
      }),
    );
  return nonEmpty([
    piece(undefined, { writes: baseWrites(state, desired, table, true) }),
    ...shared,
    foreignRules(state, base.foreign.filter(isTouched), options, table),
    jumpRules(state, layout.jumps.filter(isTouched), table),
  ]);
}

function nonEmpty(pieces: readonly Piece[]): readonly Piece[] {
  return pieces.filter((each) => !isEmptyPiece(each));
}
