/**
 * From whatever the kernel has to the table as it should be. A cold start fills the maps in short transactions while no
 * packet comes by, and the last one hooks the chains in: until then nothing works, from then on everything does. A table
 * that is there already goes on working, and gets what differs, service port by service port.
 */
import { deepEqual } from '../../../model/equal.ts';
import type { ServicePortId } from '../../../model/serviceTracker.ts';
import type { ServicePortPlan } from '../../../plan/types.ts';
import type { ServicePortPlans } from '../../../proxy/reconciler.ts';
import type { ReportBuilder } from '../../../proxy/report.ts';
import { forEachSliced, type TimeSlice } from '../../../time/timeSlice.ts';
import { type Committer, EditStream, slices } from './committer.ts';
import { isSameElement, placeOf } from './diff.ts';
import { ownerComment } from './names.ts';
import { printKey } from './print.ts';
import { addChains, addSets, byName, groupBy, rewriteChain } from './table.ts';
import type {
  ChainSpec,
  Element,
  ElementEdit,
  NftClient,
  Ruleset,
  RuleSpec,
  SetsByName,
  TableOperation,
  TableState,
  TableTransaction,
} from './table.ts';

export interface DesiredTable {
  readonly ruleset: Ruleset;
  /** Elements that belong to several service ports, or to none. */
  shared(): Iterable<Element>;
  readonly servicePorts: ServicePortPlans;
  compile(port: ServicePortPlan): readonly Element[];
}

interface ResyncOptions extends DesiredTable {
  readonly client: Pick<NftClient, 'inspect'>;
  readonly committer: Committer;
  /** The sets whose elements have to be looked at. Others have what they should, as long as they are there. */
  readonly only?: ReadonlySet<string>;
  readonly timeSlice?: TimeSlice;
}

/** In a report: something that nothing looks up any more could not be deleted. */
export const CLEANUP_FAILURES = 'cleanup.failures';

/** Returns whether every service port was taken. */
export async function resync(options: ResyncOptions, report: ReportBuilder): Promise<boolean> {
  const { client, committer, ruleset, servicePorts, timeSlice } = options;
  const state = await client.inspect(ruleset, options.only);
  await state?.deleteUnknown?.();
  if (state?.isDormant) await committer.commit([{ kind: 'addTable' }]);
  await committer.commit(structure(state, ruleset));
  const work = new Elements(state, ruleset);
  const stream = new EditStream(committer, work.sets);
  if (work.isNeeded) {
    for (const some of slices(options.shared(), committer.chunk))
      await stream.add(work.editFor(undefined, some));
    await forEachSliced(
      servicePorts,
      ([id, port]) => stream.add(work.editFor(id, options.compile(port))),
      timeSlice,
    );
    await stream.flush();
  }
  await committer.commit(hooks(state, ruleset));
  const { refused } = stream;
  const stale = work.stale([...refused.keys()].flatMap((id) => servicePorts.get(id)?.name ?? []));
  await stream.addShared({ removes: stale, adds: [] });
  await stream.flush();
  report.objects += stream.elements;
  for (const [id, error] of refused) report.refused.set(id, error);
  if (refused.size > 0) return false;
  // No rule refers to it: it may stay until the next resync, if it has to.
  const swept = await committer.attempt(garbage(state, ruleset));
  if (swept.state === 'refused') report.count(CLEANUP_FAILURES);
  return true;
}

/**
 * Sets and chains that are missing. A set that differs cannot be changed in place: it is deleted with all rules, and
 * added again. Other chains are left as they are for now: what they look up is added later.
 */
function structure(state: TableState | undefined, { sets, chains }: Ruleset): TableTransaction {
  const plain = chains.filter(({ hook }) => hook === undefined);
  if (!state) return [{ kind: 'addTable' }, ...addSets(sets), ...addChains(plain)];
  const different = sets.filter(({ name }) => state.sets.get(name) === 'different');
  const rewritten = different.length > 0;
  return [
    ...(rewritten ? flush([...state.chains.keys()]) : []),
    ...different.flatMap((set) => [...deleteSets([set.name]), ...addSets([set])]),
    ...addSets(without(sets, state.sets)),
    ...addChains(without(plain, state.chains)),
    ...(rewritten ? chains.filter(({ name }) => state.chains.has(name)).flatMap(rewriteChain) : []),
  ];
}

/** The switch: from here on packets come to the chains, and find the elements. */
function hooks(state: TableState | undefined, { sets, chains }: Ruleset): TableTransaction {
  const isRewritten = sets.some(({ name }) => state?.sets.get(name) === 'different');
  const hooked = chains.filter(({ hook }) => hook !== undefined);
  return [
    ...chains
      // Of a chain that is hooked in, it may be the place that differs, which no rewriting puts right.
      .filter(({ name, hook }) => (!isRewritten || hook) && state?.chains.get(name) === 'different')
      .flatMap((chain) =>
        chain.hook ? [...deleteChain(chain), ...addChains([chain])] : rewriteChain(chain),
      ),
    ...addChains(state ? without(hooked, state.chains) : hooked),
  ];
}

/** Stale sets and chains. A chain that others jump to is emptied first. */
function garbage(state: TableState | undefined, { sets, chains }: Ruleset): TableTransaction {
  if (!state) return [];
  const [wantedSets, wantedChains] = [byName(sets), byName(chains)];
  const oldSets = [...state.sets.keys()].filter((name) => !wantedSets.has(name));
  const oldChains = [...state.chains.keys()].filter((name) => !wantedChains.has(name));
  return [
    ...flush(oldChains),
    ...deleteSets(oldSets),
    ...oldChains.map((chain): TableOperation => ({ kind: 'deleteChain', chain })),
  ];
}

function flush(chains: readonly string[]): TableTransaction {
  return chains.map((chain) => ({ kind: 'flushChain', chain }));
}

function deleteSets(names: readonly string[]): TableTransaction {
  return names.map((set) => ({ kind: 'deleteSet', set }));
}

function deleteChain({ name: chain }: ChainSpec): TableTransaction {
  return [
    { kind: 'flushChain', chain },
    { kind: 'deleteChain', chain },
  ];
}

function without<T extends { readonly name: string }>(
  all: readonly T[],
  others: { has(name: string): boolean },
): readonly T[] {
  return all.filter(({ name }) => !others.has(name));
}

export interface Restructuring {
  /** Before the elements. */
  readonly first: TableTransaction;
  /** After them: the rules that look them up. */
  readonly last: TableTransaction;
}

/** From one table to another that has more of the same kind. */
export function restructure(before: Ruleset, after: Ruleset): Restructuring {
  if (before === after) return { first: [], last: [] };
  const sets = without(after.sets, byName(before.sets));
  const chains = without(after.chains, byName(before.chains));
  return { first: [...addSets(sets), ...addChains(chains)], last: amendChains(before, after) };
}

/**
 * From one table to another that has less of the same kind: what is looked up or led to by nothing but rules that are
 * deleted too. It can be cut anywhere and sent in parts.
 */
export function removal(before: Ruleset, after: Ruleset): TableTransaction {
  return [
    ...amendChains(before, after),
    ...without(before.chains, byName(after.chains)).flatMap(deleteChain),
    ...deleteSets(without(before.sets, byName(after.sets)).map(({ name }) => name)),
  ];
}

function amendChains(before: Ruleset, after: Ruleset): TableTransaction {
  const old = byName(before.chains);
  return after.chains.flatMap((chain) => {
    const known = old.get(chain.name);
    return !known || deepEqual(known, chain) ? [] : amendChain(known, chain);
  });
}

/**
 * When a rule is added that looks up a map, the kernel looks at every element of the map, so that rules which stay had
 * better not be deleted and added: with 300,000 elements that held its lock for 60 ms.
 */
function amendChain(before: ChainSpec, after: ChainSpec): TableTransaction {
  if (!after.isUnordered) return rewriteChain(after);
  const only = (one: ChainSpec, other: ChainSpec): readonly RuleSpec[] =>
    one.rules.filter((rule) => !other.rules.some((each) => deepEqual(rule, each)));
  const chain = after.name;
  return [
    ...only(before, after).map((rule): TableOperation => ({ kind: 'deleteRule', chain, rule })),
    ...only(after, before).map((rule): TableOperation => ({ kind: 'addRule', chain, rule })),
  ];
}

/** What the sets have, compared with what they should have. */
export class Elements {
  readonly sets: SetsByName;
  readonly #existing: TableState['elements'];
  /** The kernel's elements that are not wanted so far, by set and key. */
  readonly #unwanted = new Map<string, Map<string, Element>>();
  /** Of sets of ranges, by set and frontend; some may be wanted meanwhile. */
  readonly #rangesByPlace = new Map<string, ReadonlyMap<string, readonly Element[]>>();
  /** Sets that were not looked at. */
  readonly #trusted: ReadonlySet<string>;

  constructor(state: Pick<TableState, 'sets' | 'elements'> | undefined, ruleset: Ruleset) {
    this.sets = byName(ruleset.sets);
    const trusted = ruleset.sets.filter(
      ({ name, dynamicSize }) =>
        dynamicSize === undefined && state?.sets.get(name) === 'same' && !state.elements.has(name),
    );
    this.#trusted = new Set(trusted.map(({ name }) => name));
    this.#existing = state?.elements ?? new Map<string, never>();
    for (const [set, elements] of this.#existing)
      if (this.sets.has(set)) this.#unwanted.set(set, new Map(elements));
  }

  /** Whether any element may have to be added or deleted. */
  get isNeeded(): boolean {
    return [...this.sets.values()].some(
      ({ name, dynamicSize }) => dynamicSize === undefined && !this.#trusted.has(name),
    );
  }

  editFor(owner: ServicePortId | undefined, wanted: readonly Element[]): ElementEdit {
    if (this.#existing.size + this.#trusted.size === 0) return { owner, removes: [], adds: wanted };
    const removes: Element[] = [];
    const adds: Element[] = [];
    /** Frontends that get another range. */
    const places = new Map<string, Element>();
    for (const element of wanted) {
      if (this.#trusted.has(element.set)) continue;
      const key = printKey(element.key);
      const existing = this.#existing.get(element.set)?.get(key);
      this.#unwanted.get(element.set)?.delete(key);
      if (existing && isSameElement(existing, element)) continue;
      if (existing) removes.push(existing);
      else if (element.key.range !== undefined) places.set(placeOf(element), element);
      adds.push(element);
    }
    for (const element of places.values()) removes.push(...this.#takeOtherRanges(element));
    return { owner, removes, adds };
  }

  /**
   * What a refused service port had stays in force: elements have its name as their comment, and those without one may
   * be anybody's.
   */
  stale(refused: readonly string[]): readonly Element[] {
    const kept = new Set(refused.map(ownerComment));
    const all = [...this.#unwanted.values()].flatMap((elements) => [...elements.values()]);
    return kept.size === 0 ? all : all.filter(({ comment }) => comment !== undefined && !kept.has(comment));
  }

  /** Ranges that may be in the way of another one of the same frontend. All of them are deleted: no other service port can want them. */
  #takeOtherRanges(element: Element): readonly Element[] {
    const unwanted = this.#unwanted.get(element.set);
    if (!unwanted) return [];
    let places = this.#rangesByPlace.get(element.set);
    if (!places) this.#rangesByPlace.set(element.set, (places = groupBy(unwanted.values(), placeOf)));
    return (places.get(placeOf(element)) ?? []).filter(({ key }) => unwanted.delete(printKey(key)));
  }
}
