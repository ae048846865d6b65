/** What has to be added and deleted, for one service port and for elements that several share. */
import type { ServicePortId } from '../../../model/serviceTracker.ts';
import { runToEnd } from '../../../time/timeSlice.ts';
import { SCOPES, NFT_SETS } from './names.ts';
import { printKey } from './print.ts';
import type { ChainSpec, Element, RuleSpec, Ruleset, TableSet } from './rule.ts';
import { deepEqual } from '../../../model/equal.ts';
import {
  addChains,
  elementOperations,
  type TableOperation,
  rewriteChain,
  type TableTransaction,
} from './transaction.ts';
import type { ServicePortPlan } from '../../../plan/types.ts';

export interface ElementEdit {
  /** `undefined`: several service ports'. */
  readonly owner: ServicePortId | undefined;
  readonly removes: readonly Element[];
  readonly adds: readonly Element[];
}

export function isEmptyEdit({ removes, adds }: ElementEdit): boolean {
  return removes.length === 0 && adds.length === 0;
}

export function editSize({ removes, adds }: ElementEdit): number {
  return removes.length + adds.length;
}

/** After so many elements other work may have its turn. */
export const ELEMENTS_PER_STEP = 500;

/** An element whose value changed is deleted and added; a changed comment alone is not worth it. */
export function* diffElements(
  before: readonly Element[],
  after: readonly Element[],
): Generator<void, Pick<ElementEdit, 'removes' | 'adds'>> {
  yield;
  if (before.length === 0 || after.length === 0) return { removes: before, adds: after };
  // A pool of another size is in another map, so that most elements need not be looked for.
  const [setsBefore, setsAfter] = [setsOf(before), setsOf(after)];
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

/** For a few elements. */
export function diffToEnd(
  before: readonly Element[],
  after: readonly Element[],
): Pick<ElementEdit, 'removes' | 'adds'> {
  return runToEnd(diffElements(before, after));
}

function setsOf(elements: readonly Element[]): ReadonlySet<string> {
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
 * A change may come between two lookups of one packet. So
 * some elements are deleted in a second transaction, when no packet is on its way that has to find them: those of a pool that gets
 * another size, and so another map; and the sources of a frontend that lets everybody in from now on.
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
  const come = new Set<string>();
  const served = new Set<string>();
  let steps = 0;
  for (const element of adds) {
    if (++steps % ELEMENTS_PER_STEP === 0) yield;
    if (setsOfRemoved.has(element.set)) come.add(idOf(element));
    if (isOfPool(element)) served.add(frontendOf(element));
  }
  const replaced = new Set<string>();
  const isReplaced = (element: Element): boolean => {
    const id = come.size === 0 ? '' : idOf(element);
    if (!come.has(id)) return false;
    replaced.add(id);
    return true;
  };
  const isLater = (element: Element): boolean => {
    if (isReplaced(element)) return false;
    if (isOfPool(element)) return served.has(frontendOf(element));
    return element.set === NFT_SETS.allowed && opened.has(frontendOf(element));
  };
  const first: ElementEdit[] = [];
  const last: ElementEdit[] = [];
  for (const { owner, adds: own, removes } of edits) {
    const now: Element[] = [];
    const later: Element[] = [];
    for (const element of removes) {
      if (++steps % ELEMENTS_PER_STEP === 0) yield;
      (isLater(element) ? later : now).push(element);
    }
    first.push({ owner, removes: now, adds: own });
    if (later.length > 0) last.push({ owner, removes: later, adds: [] });
  }
  return { first, last, replaced };
}

export interface InOrder {
  readonly first: readonly ElementEdit[];
  readonly last: readonly ElementEdit[];
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
export function frontendOf({ key: { address, protocol, port } }: Element): string {
  return `${address} ${protocol} ${port}`;
}

/** Deletes before adds: an element may pass from one service port to another. */
export function editOperations(
  edits: readonly ElementEdit[],
  sets: ReadonlyMap<string, TableSet>,
): TableTransaction {
  return [
    ...elementOperations(
      'deleteElements',
      edits.flatMap(({ removes }) => removes),
      sets,
    ),
    ...elementOperations(
      'addElements',
      edits.flatMap(({ adds }) => adds),
      sets,
    ),
  ];
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
  const newSets = without(after.sets, before.sets);
  return {
    first: [
      ...newSets.map((set): TableOperation => ({ kind: 'addSet', set })),
      ...addChains(without(after.chains, before.chains)),
    ],
    last: amendChains(before, after),
  };
}

/**
 * From one table to another that has less of the same kind: what is looked up or led to by nothing but rules that go.
 * It can be cut anywhere and sent in parts.
 */
export function removal(before: Ruleset, after: Ruleset): TableTransaction {
  return [
    ...amendChains(before, after),
    ...without(before.chains, after.chains).flatMap(({ name }): TableOperation[] => [
      { kind: 'flushChain', name },
      { kind: 'deleteChain', name },
    ]),
    ...without(before.sets, after.sets).map(({ name }): TableOperation => ({ kind: 'deleteSet', name })),
  ];
}

function without<T extends { readonly name: string }>(all: readonly T[], others: readonly T[]): readonly T[] {
  const names = new Set(others.map(({ name }) => name));
  return all.filter(({ name }) => !names.has(name));
}

function amendChains(before: Ruleset, after: Ruleset): TableTransaction {
  const old = new Map(before.chains.map((chain) => [chain.name, chain]));
  return after.chains.flatMap((chain) => {
    const known = old.get(chain.name);
    return !known || deepEqual(known, chain) ? [] : amendChain(known, chain);
  });
}

/**
 * When a rule comes that looks up a map, the kernel looks at every element of the map, so that rules which stay had
 * better not go and come: with 300,000 elements that held its lock for 60 ms.
 */
function amendChain(before: ChainSpec, after: ChainSpec): TableTransaction {
  if (!after.isUnordered) return rewriteChain(after);
  const chain = after.name;
  const isIn = (rule: RuleSpec, { rules }: ChainSpec): boolean =>
    rules.some((other) => deepEqual(rule, other));
  return [
    ...before.rules
      .filter((rule) => !isIn(rule, after))
      .map((rule): TableOperation => ({ kind: 'deleteRule', chain, rule })),
    ...after.rules
      .filter((rule) => !isIn(rule, before))
      .map((rule): TableOperation => ({ kind: 'addRule', chain, rule })),
  ];
}

/**
 * Elements that another program deleted or added. The kernel names them, so that nothing has to be read: reading a map
 * of a hundred thousand elements takes the kernel most of a second, and repairing one of them no time at all.
 */
export interface ForeignElement {
  readonly element: Element;
  /** Whether it is in the table now. */
  readonly isThere: boolean;
}

/** `wanted`: what the table should have for a set and a key. */
export function repairs(
  foreign: readonly ForeignElement[],
  sets: ReadonlyMap<string, TableSet>,
  wanted: (set: string, element: Element) => Element | undefined,
): TableTransaction {
  const removes: Element[] = [];
  const adds: Element[] = [];
  for (const { element, isThere } of lastOfEach(foreign)) {
    const set = sets.get(element.set);
    if (!set || set.dynamicSize !== undefined) continue;
    const want = wanted(element.set, element);
    if (want && isThere && sameValue(want, element)) continue;
    if (isThere) removes.push(element);
    if (want) adds.push(want);
  }
  return [
    ...elementOperations('deleteElements', removes, sets),
    ...elementOperations('addElements', adds, sets),
  ];
}

/** An element that was taken out and put in again is there. */
function lastOfEach(foreign: readonly ForeignElement[]): Iterable<ForeignElement> {
  return new Map(
    foreign.map((each) => [`${each.element.set} ${printKey(each.element.key)}`, each] as const),
  ).values();
}

/** Whether elements of a service port may be among them: judged by ports alone, so that few have to be compiled. */
export function concernedBy(foreign: readonly ForeignElement[]): (port: ServicePortPlan) => boolean {
  // Where a key has two ports, the first is the endpoint's.
  const ports = new Set(foreign.map(({ element: { key } }) => key.secondPort ?? key.port));
  return ({ frontends }) => frontends.some(({ port }) => ports.has(port));
}
