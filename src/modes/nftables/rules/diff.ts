/** What has to be added and deleted: for one service port, and in which transactions for all of them. */
import type { ServicePortId } from '../../../model/serviceTracker.ts';
import type { ServicePortPlan } from '../../../plan/types.ts';
import { deepEqual } from '../../../model/equal.ts';
import { runSliced, type TimeSlice } from '../../../time/timeSlice.ts';
import { type NftFragment, NO_ELEMENTS } from './compile.ts';
import type { ReferenceCounts } from './counts.ts';
import { LARGEST_DIRECT_POOL, NFT_SETS, SCOPES } from './names.ts';
import { printKey } from './print.ts';
import { byName, deleteChain, editSize, rewriteChain } from './table.ts';
import type {
  ChainSpec,
  Element,
  ElementChanges,
  ElementEdit,
  Ruleset,
  RuleSpec,
  SetsByName,
  TableOperation,
  TableTransaction,
} from './table.ts';

/** After so many elements other work may have its turn. */
const ELEMENTS_PER_STEP = 500;

/** A service port before and after a change. */
interface PlanChange {
  readonly id: ServicePortId;
  readonly before: ServicePortPlan | undefined;
  readonly after: ServicePortPlan | undefined;
}

interface EditOptions {
  readonly before: (port: ServicePortPlan) => NftFragment;
  readonly after: (port: ServicePortPlan) => NftFragment;
  readonly counts: ReferenceCounts;
  readonly now: () => number;
  readonly timeSlice?: TimeSlice | undefined;
}

/** What has to be edited so that these service ports become what they should be. The last edit is of what several share. */
export async function editsFor(
  changes: Iterable<PlanChange>,
  { before, after, counts, now, timeSlice }: EditOptions,
): Promise<ElementEdit[]> {
  const edits: ElementEdit[] = [];
  timeSlice?.begin();
  for (const { id, ...port } of changes) {
    const old = port.before ? before(port.before) : NO_ELEMENTS;
    const wanted = port.after ? after(port.after) : NO_ELEMENTS;
    counts.add(wanted); // first: what both use is not idle in between
    counts.remove(old, now());
    const steps = diffElements(old.elements, wanted.elements);
    edits.push({ owner: id, ...(await runSliced(steps, timeSlice)) });
  }
  edits.push({ owner: undefined, ...counts.takeChanges() });
  return edits;
}

/** An element whose value changed is deleted and added; a changed comment alone is not worth it. */
export function* diffElements(
  before: readonly Element[],
  after: readonly Element[],
): Generator<void, ElementChanges> {
  yield;
  if (before.length === 0 || after.length === 0) return { removes: before, adds: after };
  // A pool of another size is in another map, so that most elements need not be looked for.
  const [setsBefore, setsAfter] = [setNames(before), setNames(after)];
  const removes: Element[] = [];
  const old = new Map<string, Element>();
  let steps = 0;
  for (const element of before) {
    if (++steps % ELEMENTS_PER_STEP === 0) yield;
    if (setsAfter.has(element.set)) old.set(idOf(element), element);
    else removes.push(element);
  }
  const adds: Element[] = [];
  for (const element of after) {
    if (++steps % ELEMENTS_PER_STEP === 0) yield;
    const id = setsBefore.has(element.set) ? idOf(element) : undefined;
    const same = id === undefined ? undefined : old.get(id);
    if (id !== undefined && same && sameValue(same, element)) old.delete(id);
    else adds.push(element);
  }
  for (const element of old.values()) removes.push(element);
  return { removes, adds };
}

function setNames(elements: readonly Element[]): ReadonlySet<string> {
  const sets = new Set<string>();
  for (const { set } of elements) sets.add(set);
  return sets;
}

export function sameValue(a: Element, b: Element): boolean {
  return a.chain === b.chain && a.endpoint?.ip === b.endpoint?.ip && a.endpoint?.port === b.endpoint?.port;
}

export function idOf({ set, key }: Element): string {
  return `${set} ${printKey(key)}`;
}

/**
 * A change may come between two lookups of one packet. So some elements are deleted in a second transaction, when no packet
 * is on its way that has to find them: those of a pool that gets another size, and so another map; and the sources of a
 * frontend that lets everybody in from now on.
 */
export function* withoutGaps(edits: readonly ElementEdit[]): Generator<void, InOrder> {
  if (edits.every(({ removes }) => removes.length === 0))
    return { first: edits, last: [], replaced: new Set() };
  const adds = edits.flatMap((edit) => edit.adds);
  const setsOfRemoved = new Set<string>();
  const restricted = new Set(adds.filter(isRestriction).map(frontendOf));
  const opened = new Set<string>();
  for (const { removes } of edits) {
    for (const element of removes) {
      setsOfRemoved.add(element.set);
      if (!isRestriction(element)) continue;
      const frontend = frontendOf(element);
      if (!restricted.has(frontend)) opened.add(frontend);
    }
    yield;
  }
  const added = new Set<string>();
  const served = new Set<string>();
  let steps = 0;
  for (const element of adds) {
    if (++steps % ELEMENTS_PER_STEP === 0) yield;
    if (setsOfRemoved.has(element.set)) added.add(idOf(element));
    if (isOfPool(element)) served.add(frontendOf(element));
  }
  const replaced = new Set<string>();
  const isLater = (element: Element): boolean => {
    const id = added.size === 0 ? '' : idOf(element);
    if (added.has(id)) {
      replaced.add(id);
      return false;
    }
    if (isOfPool(element)) return served.has(frontendOf(element));
    return element.set === NFT_SETS.allowed && opened.has(frontendOf(element));
  };
  const first: ElementEdit[] = [];
  const last: Element[] = [];
  for (const edit of edits) {
    const removes: Element[] = [];
    for (const element of edit.removes) {
      if (++steps % ELEMENTS_PER_STEP === 0) yield;
      (isLater(element) ? last : removes).push(element);
    }
    first.push({ ...edit, removes });
  }
  return { first, last, replaced };
}

export interface InOrder {
  readonly first: readonly ElementEdit[];
  /** Deleted afterwards. */
  readonly last: readonly Element[];
  /** Which elements are deleted and added, by `idOf`. */
  readonly replaced: ReadonlySet<string>;
}

function isRestriction({ set }: Element): boolean {
  return set === SCOPES.address.restricted;
}

function isOfPool({ endpoint, chain }: Element): boolean {
  return endpoint !== undefined || chain !== undefined;
}

/** Whatever pool and source the element is of. */
function frontendOf({ key: { address, protocol, port } }: Element): string {
  return `${address} ${protocol} ${port}`;
}

/*
 * A large change in several transactions, none of which is long: one Service may have tens of thousands of elements, and
 * while the kernel takes them no other change gets in.
 *
 * What packets can see of one frontend changes in one transaction. What they cannot see is added before it and deleted after it:
 * the endpoints of a large pool are found by nothing but its frontend's verdict.
 */

interface Portions {
  /** Added while no packet sees them yet. */
  readonly early: readonly Element[];
  readonly main: readonly (readonly ElementChanges[])[];
  /** Deleted when no packet sees them any more. */
  readonly late: readonly Element[];
}

/** Whether it is worth it. The kernel copies a whole set of ranges for every transaction that changes it. */
export function isDivisible({ first, last }: InOrder, chunk: number): boolean {
  const isRange = ({ set }: Element): boolean => set === NFT_SETS.allowed;
  return (
    first.reduce((sum, edit) => sum + editSize(edit), last.length) > chunk &&
    !last.some(isRange) &&
    !first.some(({ adds, removes }) => adds.some(isRange) || removes.some(isRange))
  );
}

export function* divide(
  { first, last, replaced }: InOrder,
  sets: SetsByName,
  chunk: number,
): Generator<void, Portions> {
  const early: Element[] = [];
  const late = [...last];
  const groups = new Map<string, { readonly removes: Element[]; readonly adds: Element[] }>();
  /**
   * What is not served at a cluster IP is refused. So an address becomes one after everything there is added, and ceases
   * to be one before anything there is deleted.
   */
  const clusterIPs: ElementChanges[] = [];
  let steps = 0;
  for (const { owner, removes, adds } of first)
    for (const [side, elements] of [
      ['removes', removes],
      ['adds', adds],
    ] as const)
      for (const element of elements) {
        if (++steps % ELEMENTS_PER_STEP === 0) yield;
        const isLarge = isOfLargePool(element, sets);
        const isReplaced = replaced.size > 0 && replaced.has(idOf(element));
        if (element.set === NFT_SETS.clusterIPs)
          clusterIPs.push({ removes: [], adds: [], [side]: [element] });
        else if (!isReplaced && (owner === undefined || isLarge))
          (side === 'adds' ? early : late).push(element);
        else {
          // Of a large pool, each place is by itself.
          const key = isReplaced && isLarge ? idOf(element) : frontendOf(element);
          let group = groups.get(key);
          if (!group) groups.set(key, (group = { removes: [], adds: [] }));
          group[side].push(element);
        }
      }
  const all = [...groups.values()];
  const added = all.filter(({ removes }) => removes.length === 0);
  const changed = all.filter(({ removes, adds }) => removes.length > 0 && adds.length > 0);
  const deleted = all.filter(({ adds }) => adds.length === 0);
  return { early, main: chunksOf([...added, ...clusterIPs, ...changed, ...deleted], chunk), late };
}

/** Changes that stay whole, in groups of about so many elements. */
function chunksOf(changes: readonly ElementChanges[], chunk: number): readonly (readonly ElementChanges[])[] {
  const chunks: ElementChanges[][] = [];
  let size = chunk;
  for (const change of changes) {
    if (size >= chunk) {
      chunks.push([]);
      size = 0;
    }
    chunks.at(-1)?.push(change);
    size += editSize(change);
  }
  return chunks;
}

/** The maps of small pools are asked one after the other; these only where a frontend's verdict says so. */
function isOfLargePool({ set, endpoint }: Element, sets: SetsByName): boolean {
  if (!endpoint) return false;
  const drawn = sets.get(set)?.key.find((field) => typeof field === 'object');
  return drawn !== undefined && drawn.drawnOf > LARGEST_DIRECT_POOL;
}

/** What `after` has and `before` has not. */
export function missingIn<T extends { readonly name: string }>(
  before: readonly T[],
  after: readonly T[],
): readonly T[] {
  const known = byName(before);
  return after.filter(({ name }) => !known.has(name));
}

/** What no rule looks up or leads to any more. */
export function dropped(before: Ruleset, after: Ruleset): TableTransaction {
  if (before === after) return [];
  return [
    ...missingIn(after.chains, before.chains).flatMap(({ name }) => deleteChain(name)),
    ...missingIn(after.sets, before.sets).map(
      ({ name }): TableOperation => ({ kind: 'deleteSet', set: name }),
    ),
  ];
}

/** The rules of chains that are there before and after. */
export function amendChains(before: Ruleset, after: Ruleset): TableTransaction {
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
  const only = (one: ChainSpec, other: ChainSpec): readonly RuleSpec[] =>
    one.rules.filter((rule) => !other.rules.some((each) => deepEqual(rule, each)));
  if (!after.isUnordered || only(before, after).length > 0) return rewriteChain(after);
  return only(after, before).map((rule): TableOperation => ({ kind: 'addRule', chain: after.name, rule }));
}
