/**
 * From what the kernel really has to what it should have. At a cold start that is everything; after a restart or
 * when somebody else has been at our chains, it is the difference.
 *
 * Leaves come first and the way in comes last, so that no packet ever meets a half-written service, and in restores
 * of some hundred chains, because the nft variant's restore takes time with the square of the chains in it.
 */
import type { ServicePortId } from '../../model/servicePort.ts';
import { type ChainText, isEmpty, type Piece, piece, type Step } from './edit.ts';
import { adoptedRules, jumpRules } from './entrances.ts';
import type { BaseFragment, ChainLevel, CompileOptions, Fragment, Layout, OwnChain } from './fragment.ts';
import { garbageSteps } from './garbage.ts';
import { TABLES } from './incremental.ts';
import { ruleKey } from './normalise.ts';
import type { ParsedChain, ParsedRule, Tables } from './parse.ts';
import { printRule } from './print.ts';
import type { Rule, Table } from './rule.ts';
import { editSharedChain, type OwnedRules, ownedRules } from './sharedChain.ts';

export interface Desired {
  readonly layout: Layout;
  readonly options: CompileOptions;
  readonly base: BaseFragment;
  /** Read once, one by one: a large cluster's rules would fill the memory if they were all held as data. */
  readonly fragments: Iterable<readonly [ServicePortId, Fragment]>;
}

/** What to do, in order. Each phase assumes that the ones before it are done. */
export interface FullPlan {
  /** Chains without which the others cannot be written. */
  readonly foundation: readonly Step[];
  /** Chains of services: endpoints first. */
  readonly chains: readonly Step[];
  /** Rules in shared chains, and the jumps into them: here a service begins to work. */
  readonly entries: readonly Step[];
  /** Chains that nothing needs any more. */
  readonly garbage: readonly Step[];
}

/** Chains in one restore: beyond some hundred the nft variant slows down. */
export const CHUNK = 500;

export function planFull(state: Tables, desired: Desired): FullPlan {
  const services = readServices(state, desired);
  return {
    foundation: TABLES.map((table) => foundation(state, desired, table)).filter(hasPieces),
    chains: [...services.writes].sort(([a], [b]) => a - b).flatMap(([, pieces]) => chunked('nat', pieces)),
    entries: TABLES.map((table) => entries(state, desired, services, table)).filter(hasPieces),
    garbage: TABLES.flatMap((table) =>
      garbageSteps(state, table, services.chainNames).flatMap((pieces) => chunked(table, pieces)),
    ),
  };
}

/** What one pass over all services leaves behind. */
interface Services {
  readonly ids: ReadonlySet<ServicePortId>;
  readonly chainNames: ReadonlySet<string>;
  readonly writes: ReadonlyMap<ChainLevel, readonly Piece[]>;
  /** By `table chain`. */
  readonly shared: ReadonlyMap<string, readonly OwnedRules[]>;
}

function readServices(state: Tables, { layout, base, fragments }: Desired): Services {
  const ids = new Set<ServicePortId>();
  const writes = new Map<ChainLevel, Piece[]>();
  const shared = new Map<string, OwnedRules[]>();
  const chainNames = new Set<string>([
    ...base.chains.map((chain) => chain.name),
    ...[...layout.sharedChains, ...layout.adoptedChains].map((ref) => ref.chain),
  ]);
  for (const [owner, fragment] of fragments) {
    ids.add(owner);
    for (const chain of fragment.chains) {
      chainNames.add(chain.name);
      const texts = rewrite(state.get(chain.table)?.get(chain.name), chain);
      if (texts.length > 0) pushTo(writes, chain.level, piece(owner, { writes: texts }));
    }
    for (const owned of ownedRules(owner, fragment.shared, state)) {
      pushTo(shared, `${owned.table} ${owned.chain}`, owned);
    }
  }
  return { ids, chainNames, writes, shared };
}

function pushTo<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const values = map.get(key);
  if (values) values.push(value);
  else map.set(key, [value]);
}

function foundation(state: Tables, { layout, base }: Desired, table: Table): Step {
  const empties = [...layout.sharedChains, ...layout.adoptedChains]
    .filter((ref) => ref.table === table && !state.get(table)?.has(ref.chain))
    .map((ref): ChainText => ({ name: ref.chain, rules: [] }));
  const writes = base.chains
    .filter((chain) => chain.table === table)
    .flatMap((chain) => rewrite(state.get(table)?.get(chain.name), chain));
  return { table, pieces: nonEmpty([piece(undefined, { writes: [...empties, ...writes] })]) };
}

function chunked(table: Table, pieces: readonly Piece[]): readonly Step[] {
  const steps: Step[] = [];
  for (let start = 0; start < pieces.length; start += CHUNK) {
    steps.push({ table, pieces: pieces.slice(start, start + CHUNK) });
  }
  return steps;
}

/** The chain as it has to be written, or nothing if the kernel has it so. Counters of rules that stay are kept. */
function rewrite(existing: ParsedChain | undefined, chain: OwnChain): readonly ChainText[] {
  if (!existing) return [{ name: chain.name, rules: chain.rules.map(printRule) }];
  const keys = chain.rules.map(ruleKey);
  const existingKeys = existing.rules.map(ruleKey);
  if (keys.length === existingKeys.length && keys.every((key, index) => key === existingKeys[index])) {
    return [];
  }
  const counted = new Map(existing.rules.map((rule, index) => [existingKeys[index], rule]));
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

function entries(state: Tables, desired: Desired, services: Services, table: Table): Step {
  const { layout, base, options } = desired;
  const shared = layout.sharedChains
    .filter((ref) => ref.table === table)
    .flatMap(({ chain }) =>
      editSharedChain(state.get(table)?.get(chain)?.rules ?? [], {
        chain,
        bodies: services.shared.get(`${table} ${chain}`) ?? [],
        tail: base.tail
          .filter((tail) => tail.table === table && tail.chain === chain)
          .map(({ rule }) => rule),
        isKnown: (id) => services.ids.has(id),
      }),
    );
  const adopted = adoptedRules(state, base.adopted, options, table);
  return { table, pieces: nonEmpty([...shared, adopted, jumpRules(state, layout, table)]) };
}

function nonEmpty(pieces: readonly Piece[]): readonly Piece[] {
  return pieces.filter((each) => !isEmpty(each));
}

function hasPieces(step: Step): boolean {
  return step.pieces.length > 0;
}
