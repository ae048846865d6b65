/**
 * From whatever the kernel has to the table as it should be. A cold start fills the maps in short transactions while no
 * packet comes by, and the last one hooks the chains in: until then nothing works, from then on everything does. A table
 * that is there already goes on working, and gets what differs, service port by service port.
 */
import type { ServicePortId } from '../../../model/serviceTracker.ts';
import type { ServicePortPlan } from '../../../plan/types.ts';
import { forEachSliced, type TimeSlice } from '../../../time/timeSlice.ts';
import { type Committer, EditStream, slices } from './committer.ts';
import { type ElementEdit, sameValue } from './diff.ts';
import { ownerComment } from './names.ts';
import { printKey } from './print.ts';
import { type ChainSpec, type Element, type Ruleset, setsByName, type TableSet } from './rule.ts';
import {
  addChains,
  type NftClient,
  type TableOperation,
  rewriteChain,
  type TableState,
  type TableTransaction,
} from './transaction.ts';

export interface DesiredTable {
  readonly ruleset: Ruleset;
  /** Elements that belong to several service ports, or to none. */
  readonly shared: readonly Element[];
  readonly servicePorts: ReadonlyMap<ServicePortId, ServicePortPlan>;
  compile(port: ServicePortPlan): readonly Element[];
}

interface ResyncOptions {
  readonly client: NftClient;
  readonly committer: Committer;
  readonly table: DesiredTable;
  /** The sets whose elements have to be looked at. Others have what they should, as long as they are there. */
  readonly only?: ReadonlySet<string>;
  readonly timeSlice: TimeSlice | undefined;
}

interface ResyncReport {
  readonly transactions: number;
  readonly elements: number;
  readonly refused: ReadonlyMap<ServicePortId, Error>;
  /** No stale object is left. */
  readonly isClean: boolean;
}

export async function resync(options: ResyncOptions): Promise<ResyncReport> {
  const { client, committer, table } = options;
  const begun = committer.transactions;
  const state = await client.inspect(table.ruleset, options.only);
  await state?.deleteUnknown?.();
  if (state?.isDormant) await committer.commit([{ kind: 'addTable' }]);
  await committer.commit(structure(state, table.ruleset));
  const work = new Elements(state, table);
  const stream = new EditStream(committer, work.sets);
  if (work.isNeeded) await writeElements(work, stream, options);
  await committer.commit(hooks(state, table.ruleset));
  const { refused } = stream;
  const stale = work.stale([...refused.keys()].flatMap((id) => table.servicePorts.get(id)?.name ?? []));
  for (const removes of slices(stale, committer.chunk))
    await stream.add({ owner: undefined, removes, adds: [] });
  await stream.flush();
  // No rule refers to it: it may stay until the next resync, if it has to.
  const swept = refused.size > 0 ? undefined : await committer.attempt(garbage(state, table.ruleset));
  const { elements } = stream;
  const isClean = swept?.state !== 'refused';
  return { transactions: committer.transactions - begun, elements, refused, isClean };
}

async function writeElements(
  work: Elements,
  stream: EditStream,
  { committer, table, timeSlice }: ResyncOptions,
): Promise<void> {
  for (const shared of slices(table.shared, committer.chunk))
    await stream.add(work.editFor(undefined, shared));
  await forEachSliced(
    table.servicePorts,
    ([id, port]) => stream.add(work.editFor(id, table.compile(port))),
    timeSlice,
  );
  await stream.flush();
}

/**
 * Sets and chains that are missing. A set that differs cannot be changed in place: it is deleted with all rules, and
 * added again. Other chains are left as they are for now: what they look up is added later.
 */
function structure(state: TableState | undefined, { sets, chains }: Ruleset): TableTransaction {
  const plain = chains.filter(({ hook }) => hook === undefined);
  if (!state) return [{ kind: 'addTable' }, ...sets.map(addSet), ...addChains(plain)];
  const different = sets.filter(({ name }) => state.sets.get(name) === 'different');
  const missing = sets.filter(({ name }) => !state.sets.has(name));
  const isNew = ({ name }: ChainSpec): boolean => !state.chains.has(name);
  const emptied: TableTransaction =
    different.length === 0
      ? []
      : [...state.chains.keys()].map((name): TableOperation => ({ kind: 'flushChain', name }));
  const rewritten = different.length > 0 ? chains.filter((chain) => !isNew(chain)) : [];
  return [
    ...emptied,
    ...different.flatMap((set): TableOperation[] => [{ kind: 'deleteSet', name: set.name }, addSet(set)]),
    ...missing.map(addSet),
    ...addChains(plain.filter(isNew)),
    ...rewritten.flatMap(rewriteChain),
  ];
}

/** The switch: from here on packets come to the chains, and find the elements. */
function hooks(state: TableState | undefined, { sets, chains }: Ruleset): TableTransaction {
  const isRewritten = sets.some(({ name }) => state?.sets.get(name) === 'different');
  return [
    ...chains
      // Of a chain that is hooked in, it may be the place that differs, which no rewriting puts right.
      .filter(({ name, hook }) => (!isRewritten || hook) && state?.chains.get(name) === 'different')
      .flatMap((chain) => (chain.hook ? replaceChain(chain) : rewriteChain(chain))),
    ...addChains(chains.filter(({ name, hook }) => hook !== undefined && !state?.chains.has(name))),
  ];
}

/** Where it is hooked in, and how, is said when it comes. */
function replaceChain(chain: ChainSpec): TableTransaction {
  const { name } = chain;
  return [{ kind: 'flushChain', name }, { kind: 'deleteChain', name }, ...addChains([chain])];
}

/** Stale sets and chains. A chain that others jump to is emptied first. */
function garbage(state: TableState | undefined, { sets, chains }: Ruleset): TableTransaction {
  if (!state) return [];
  const wantedSets = new Set(sets.map(({ name }) => name));
  const wantedChains = new Set(chains.map(({ name }) => name));
  const oldChains = [...state.chains.keys()].filter((name) => !wantedChains.has(name));
  return [
    ...oldChains.map((name): TableOperation => ({ kind: 'flushChain', name })),
    ...[...state.sets.keys()]
      .filter((name) => !wantedSets.has(name))
      .map((name): TableOperation => ({ kind: 'deleteSet', name })),
    ...oldChains.map((name): TableOperation => ({ kind: 'deleteChain', name })),
  ];
}

function addSet(set: TableSet): TableOperation {
  return { kind: 'addSet', set };
}

class Elements {
  readonly sets: ReadonlyMap<string, TableSet>;
  readonly #existing: TableState['elements'];
  /** The kernel's elements that are not wanted so far, by set and key. */
  readonly #unwanted = new Map<string, Map<string, Element>>();
  /** Of sets of ranges, by set and frontend; some may be wanted meanwhile. */
  readonly #rangesByPlace = new Map<string, ReadonlyMap<string, readonly Element[]>>();
  /** Sets that were not looked at. */
  readonly #trusted: ReadonlySet<string>;

  constructor(state: TableState | undefined, { ruleset }: DesiredTable) {
    this.sets = setsByName(ruleset);
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
      // By its comment, connections are counted for whose it is.
      if (existing && sameValue(existing, element) && existing.comment === element.comment) continue;
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
    if (!places) this.#rangesByPlace.set(element.set, (places = byPlace(unwanted.values())));
    const found = (places.get(placeOf(element)) ?? []).filter(({ key }) => unwanted.delete(printKey(key)));
    return found;
  }
}

function byPlace(elements: Iterable<Element>): ReadonlyMap<string, readonly Element[]> {
  const places = new Map<string, Element[]>();
  for (const element of elements) {
    const place = placeOf(element);
    const others = places.get(place);
    if (others) others.push(element);
    else places.set(place, [element]);
  }
  return places;
}

/** Its frontend, whatever the range. */
function placeOf({ key }: Element): string {
  const { range: _, ...frontend } = key;
  return printKey(frontend);
}
