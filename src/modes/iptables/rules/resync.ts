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
import { foreignRules, editSharedChain, jumpRules, type OwnedRules, ownedRules } from './chainEdits.ts';
import type { BaseFragment, CompileOptions, Fragment, Layout, OwnChain } from './fragment.ts';
import { garbageBatches, ownChains } from './cleanup.ts';
import { TABLES } from './diff.ts';
import { printRule, ruleKey } from './print.ts';
import { IN_PLACE, type ParsedChain, type ParsedRule, type Tables } from './parse.ts';
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

/**
 * foundation: chains that are missing or empty, without which the others cannot be written. chains: those of services. entries: rules in shared
 * chains, and the jumps into them; here a service begins to work. garbage: chains that nothing needs any more.
 */
export type Phase = 'foundation' | 'chains' | 'entries' | 'garbage';

interface FullStep extends Step {
  readonly phase: Phase;
}

/**
 * What to do, in order. Each step assumes that the ones before it are done. Between two services there is nothing to
 * do: a point at which other work can have its turn.
 */
export function* fullSteps(
  state: Tables,
  desired: Desired,
  chainsPerRestore: number = CHAINS_PER_RESTORE,
): Generator<FullStep | undefined> {
  for (const table of TABLES) {
    const pieces = foundation(state, desired, table);
    if (pieces.length > 0) yield { phase: 'foundation', table, pieces };
  }
  const seen = new Services(state, desired);
  const pieces: Piece[] = [];
  for (const [owner, fragment] of desired.fragments) {
    pieces.push(...seen.read(state, owner, fragment));
    while (pieces.length >= chainsPerRestore) {
      yield { phase: 'chains', table: 'nat', pieces: pieces.splice(0, chainsPerRestore) };
    }
    yield undefined;
  }
  if (pieces.length > 0) yield { phase: 'chains', table: 'nat', pieces };
  for (const table of TABLES) {
    yield undefined;
    const pieces = entries(state, desired, seen, table);
    if (pieces.length > 0) yield { phase: 'entries', table, pieces };
  }
  for (const table of TABLES) {
    yield undefined;
    for (const batch of garbageBatches(seen.unneeded(table))) {
      for (const step of inChunks(table, batch, chainsPerRestore)) yield { phase: 'garbage', ...step };
    }
  }
}

/** What is kept of the services while they pass. */
class Services {
  readonly ids = new Set<ServicePortId>();
  /** Chains of ours that no service has needed so far. */
  readonly #unneeded: ReadonlyMap<Table, Set<string>>;
  /** By `table chain`. */
  readonly shared = new Map<string, OwnedRules[]>();

  readonly #scope: TouchedChains | undefined;

  constructor(state: Tables, { layout, base, scope }: Desired) {
    this.#scope = scope;
    this.#unneeded = new Map(
      TABLES.map((table) => [table, scope ? scope.serviceChains(table) : ownChains(state, table)]),
    );
    for (const { table, name } of base.chains) this.#need(table, name);
    for (const { table, chain } of [...layout.sharedChains, ...layout.foreignChains])
      this.#need(table, chain);
  }

  unneeded(table: Table): ReadonlySet<string> {
    return this.#unneeded.get(table) ?? new Set();
  }

  #need(table: Table, chain: string): void {
    this.#unneeded.get(table)?.delete(chain);
  }

  /** The chains to write; every chain that only one service uses is in nat. */
  *read(state: Tables, owner: ServicePortId, fragment: Fragment): Generator<Piece> {
    this.ids.add(owner);
    const scope = this.#scope;
    const shared = scope
      ? fragment.shared.filter((each) => scope.has(each.table, each.chain))
      : fragment.shared;
    for (const owned of ownedRules(owner, shared, state)) {
      const key = `${owned.table} ${owned.chain}`;
      const others = this.shared.get(key);
      if (others) others.push(owned);
      else this.shared.set(key, [owned]);
    }
    for (const chain of fragment.chains) {
      if (scope && !scope.has(chain.table, chain.name)) continue;
      this.#need(chain.table, chain.name);
      const writes = rewrite(state.get(chain.table)?.get(chain.name), chain);
      if (writes.length > 0) yield piece(owner, { writes });
    }
  }
}

function foundation(state: Tables, { layout, base, scope }: Desired, table: Table): readonly Piece[] {
  const isInScope = (chain: string): boolean => scope?.has(table, chain) ?? true;
  const empties = [...layout.sharedChains, ...layout.foreignChains]
    .filter((ref) => ref.table === table && isInScope(ref.chain) && !state.get(table)?.has(ref.chain))
    .map((ref): ChainText => ({ name: ref.chain, rules: [] }));
  const writes = base.chains
    .filter((chain) => chain.table === table && isInScope(chain.name) && !isInUse(state, chain))
    .flatMap((chain) => rewrite(state.get(table)?.get(chain.name), chain));
  return nonEmpty([piece(undefined, { writes: [...empties, ...writes] })]);
}

/**
 * A fixed chain with rules, perhaps of another mode or with another mark, is replaced together with the rules that lead
 * packets to services: in between, what one half marks the other would not masquerade.
 */
function isInUse(state: Tables, { table, name }: OwnChain): boolean {
  return (state.get(table)?.get(name)?.rules.length ?? 0) > 0;
}

/** The chain as it has to be written, or nothing if the kernel has it so. Counters of rules that stay are kept. */
function rewrite(existing: ParsedChain | undefined, chain: OwnChain): readonly ChainText[] {
  if (!existing) return [{ name: chain.name, rules: chain.rules.map(printRule) }];
  if (existing === IN_PLACE) return [];
  const keys = chain.rules.map(ruleKey);
  const { rules } = existing;
  const existingKeys = rules.map(ruleKey);
  if (keys.length === existingKeys.length && keys.every((key, index) => key === existingKeys[index])) {
    return [];
  }
  const counted = new Map(rules.map((rule, index) => [existingKeys[index], rule]));
  return [
    {
      name: chain.name,
      rules: chain.rules.map((rule, index) => withCounters(rule, counted.get(keys[index]))),
    },
  ];
}

function withCounters(rule: Rule, existing: ParsedRule | undefined): string {
  const text = printRule(rule);
  const counters = existing?.counters;
  return counters ? `[${counters.packets}:${counters.bytes}] ${text}` : text;
}

function entries(state: Tables, desired: Desired, seen: Services, table: Table): readonly Piece[] {
  const { layout, base, options, scope } = desired;
  const isInScope = (chain: string): boolean => scope?.has(table, chain) ?? true;
  const shared = layout.sharedChains
    .filter((ref) => ref.table === table && isInScope(ref.chain))
    .flatMap(({ chain }) =>
      editSharedChain(state.get(table)?.get(chain)?.rules ?? [], {
        chain,
        bodies: seen.shared.get(`${table} ${chain}`) ?? [],
        tail: base.tail
          .filter((tail) => tail.table === table && tail.chain === chain)
          .map(({ rule }) => rule),
        isKnown: (id) => seen.ids.has(id),
      }),
    );
  const rules = base.foreign.filter(({ chain }) => isInScope(chain));
  const jumps = layout.jumps.filter(({ from }) => isInScope(from));
  const foreign = foreignRules(state, rules, options, table);
  const writes = base.chains
    .filter((chain) => chain.table === table && isInScope(chain.name) && isInUse(state, chain))
    .flatMap((chain) => rewrite(state.get(table)?.get(chain.name), chain));
  return nonEmpty([piece(undefined, { writes }), ...shared, foreign, jumpRules(state, jumps, table)]);
}

function nonEmpty(pieces: readonly Piece[]): readonly Piece[] {
  return pieces.filter((each) => !isEmptyPiece(each));
}
