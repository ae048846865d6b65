/**
 * A large change in several transactions, none of which is long: one Service may have tens of thousands of elements, and
 * while the kernel takes them no other change gets in.
 *
 * What packets can see of one frontend changes in one transaction. What they cannot see is added before it and deleted after it:
 * the endpoints of a large pool are found by nothing but its frontend's verdict.
 */
import {
  type ElementEdit,
  editOperations,
  ELEMENTS_PER_STEP,
  frontendOf,
  idOf,
  type InOrder,
  editSize,
} from './diff.ts';
import { LARGEST_DIRECT_POOL, NFT_SETS } from './names.ts';
import type { Element, TableSet } from './rule.ts';
import type { TableTransaction } from './transaction.ts';

interface Portions {
  /** Seen by no packet yet. */
  readonly early: readonly ElementEdit[];
  readonly main: readonly (readonly ElementEdit[])[];
  /** Seen by no packet any more. */
  readonly late: readonly ElementEdit[];
}

/** Whether it is worth it. The kernel copies a whole set of ranges for every transaction that changes it. */
export function isDivisible({ first, last }: InOrder, chunk: number): boolean {
  const size = [...first, ...last].reduce((sum, edit) => sum + editSize(edit), 0);
  const hasRanges = (elements: readonly Element[]): boolean =>
    elements.some(({ set }) => set === NFT_SETS.allowed);
  return size > chunk && ![...first, ...last].some((edit) => hasRanges(edit.adds) || hasRanges(edit.removes));
}

export function* divide(
  { first, last, replaced }: InOrder,
  sets: ReadonlyMap<string, TableSet>,
  chunk: number,
): Generator<void, Portions> {
  const early: ElementEdit[] = [];
  const late: ElementEdit[] = [...last];
  const groups = new Map<string, EditParts>();
  /**
   * What is not served at a cluster IP is refused. So an address becomes one after everything there is added, and ceases
   * to be one before anything there is deleted.
   */
  const clusterIPs: ElementEdit[] = [];
  const groupOf = (element: Element, isReplaced: boolean): EditParts => {
    // Of a large pool, each place is by itself.
    const key = isReplaced && isOfLargePool(element, sets) ? idOf(element) : frontendOf(element);
    let group = groups.get(key);
    if (!group) groups.set(key, (group = noParts()));
    return group;
  };
  const hasReplaced = replaced.size > 0;
  let steps = 0;
  for (const { owner, removes, adds } of first) {
    const [before, after]: [EditParts, EditParts] = [noParts(), noParts()];
    for (const element of removes) {
      if (++steps % ELEMENTS_PER_STEP === 0) yield;
      const isReplaced = hasReplaced && replaced.has(idOf(element));
      if (isClusterIP(element)) clusterIPs.push({ owner, removes: [element], adds: [] });
      else if (!isReplaced && (owner === undefined || isOfLargePool(element, sets)))
        after.removes.push(element);
      else groupOf(element, isReplaced).removes.push(element);
    }
    for (const element of adds) {
      if (++steps % ELEMENTS_PER_STEP === 0) yield;
      const isReplaced = hasReplaced && replaced.has(idOf(element));
      if (isClusterIP(element)) clusterIPs.push({ owner, removes: [], adds: [element] });
      else if (!isReplaced && (owner === undefined || isOfLargePool(element, sets)))
        before.adds.push(element);
      else groupOf(element, isReplaced).adds.push(element);
    }
    early.push({ owner, ...before });
    late.push({ owner, ...after });
  }
  const [added, changed, deleted]: [ElementEdit[], ElementEdit[], ElementEdit[]] = [[], [], []];
  for (const group of groups.values()) {
    const change = group.removes.length === 0 ? added : group.adds.length === 0 ? deleted : changed;
    change.push({ owner: undefined, ...group });
  }
  const main = chunksOf([...added, ...clusterIPs, ...changed, ...deleted], chunk);
  return { early: early.filter(isSome), main: [...main], late: late.filter(isSome) };
}

interface EditParts {
  readonly removes: Element[];
  readonly adds: Element[];
}

function noParts(): EditParts {
  return { removes: [], adds: [] };
}

/** Edits that stay whole, in groups of about so many elements. */
function* chunksOf(edits: readonly ElementEdit[], chunk: number): Generator<readonly ElementEdit[]> {
  let group: ElementEdit[] = [];
  let size = 0;
  for (const edit of edits) {
    group.push(edit);
    size += editSize(edit);
    if (size < chunk) continue;
    yield group;
    group = [];
    size = 0;
  }
  if (group.length > 0) yield group;
}

function isClusterIP({ set }: Element): boolean {
  return set === NFT_SETS.clusterIPs;
}

function isSome(edit: ElementEdit): boolean {
  return editSize(edit) > 0;
}

/** The maps of small pools are asked one after the other; these only where a frontend's verdict says so. */
function isOfLargePool({ set, endpoint }: Element, sets: ReadonlyMap<string, TableSet>): boolean {
  if (!endpoint) return false;
  const drawn = sets.get(set)?.key.find((field) => typeof field === 'object');
  return drawn !== undefined && drawn.drawnOf > LARGEST_DIRECT_POOL;
}

/** These elements in transactions of so many. */
export function* inTransactions(
  edits: readonly ElementEdit[],
  sets: ReadonlyMap<string, TableSet>,
  chunk: number,
): Generator<TableTransaction> {
  let group: ElementEdit[] = [];
  let size = 0;
  for (const { owner, removes, adds } of edits) {
    for (let at = 0; at < removes.length + adds.length; ) {
      const room = chunk - size;
      const gone = removes.slice(at, at + room);
      const from = Math.max(0, at + gone.length - removes.length);
      const come = adds.slice(from, from + room - gone.length);
      group.push({ owner, removes: gone, adds: come });
      at += gone.length + come.length;
      size += gone.length + come.length;
      if (size < chunk) continue;
      yield editOperations(group, sets);
      group = [];
      size = 0;
    }
  }
  if (size > 0) yield editOperations(group, sets);
}
