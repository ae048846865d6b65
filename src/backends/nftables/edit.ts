/** What has to come and go for one service port, and for all that share. */
import type { ServicePortId } from '../../model/servicePort.ts';
import { SCOPES, SETS } from './names.ts';
import { printKey } from './print.ts';
import type { Chain, Element, Rule, Ruleset, TableSet } from './rule.ts';
import { deepEqual } from '../../model/equal.ts';
import {
  addChains,
  elementOperations,
  rewriteChain,
  type Operation,
  type Transaction,
} from './transaction.ts';

export interface Edit {
  /** `undefined`: several service ports'. */
  readonly owner: ServicePortId | undefined;
  readonly removes: readonly Element[];
  readonly adds: readonly Element[];
}

export function isEmpty({ removes, adds }: Edit): boolean {
  return removes.length === 0 && adds.length === 0;
}

export function sizeOf({ removes, adds }: Edit): number {
  return removes.length + adds.length;
}

/** An element whose value changed goes and comes; a comment alone is not worth it. */
export function diffElements(
  before: readonly Element[],
  after: readonly Element[],
): Pick<Edit, 'removes' | 'adds'> {
  if (before.length === 0 || after.length === 0) return { removes: before, adds: after };
  const old = new Map(before.map((element) => [idOf(element), element]));
  const adds: Element[] = [];
  for (const element of after) {
    const id = idOf(element);
    const same = old.get(id);
    if (same && sameValue(same, element)) old.delete(id);
    else adds.push(element);
  }
  return { removes: [...old.values()], adds };
}

export function sameValue(a: Element, b: Element): boolean {
  return a.chain === b.chain && a.endpoint?.ip === b.endpoint?.ip && a.endpoint?.port === b.endpoint?.port;
}

function idOf({ set, key }: Element): string {
  return `${set} ${printKey(key)}`;
}

/**
 * A packet sees each element of one moment, but not all of them of the same: a change may come between two lookups. So
 * some elements go in a second transaction, when no packet is on its way that has to find them: those of a pool that gets
 * another size, and so another map; and the sources of a frontend that lets everybody in from now on.
 */
export function withoutGaps(edits: readonly Edit[]): {
  readonly first: readonly Edit[];
  readonly last: readonly Edit[];
} {
  if (edits.every(({ removes }) => removes.length === 0)) return { first: edits, last: [] };
  const adds = edits.flatMap((edit) => edit.adds);
  const replaced = new Set(adds.map(idOf));
  const served = new Set(adds.filter(isOfPool).map(frontendOf));
  const restricted = new Set(adds.filter(isRestriction).map(frontendOf));
  const opened = new Set(
    edits
      .flatMap(({ removes }) => removes.filter(isRestriction).map(frontendOf))
      .filter((frontend) => !restricted.has(frontend)),
  );
  const isLater = (element: Element): boolean => {
    if (replaced.has(idOf(element))) return false;
    if (isOfPool(element)) return served.has(frontendOf(element));
    return element.set === SETS.allowed && opened.has(frontendOf(element));
  };
  const first: Edit[] = [];
  const last: Edit[] = [];
  for (const { owner, adds: own, removes } of edits) {
    const now: Element[] = [];
    const later: Element[] = [];
    for (const element of removes) (isLater(element) ? later : now).push(element);
    first.push({ owner, removes: now, adds: own });
    if (later.length > 0) last.push({ owner, removes: later, adds: [] });
  }
  return { first, last };
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

/** All that goes before all that comes: an element may go from one service port to another. */
export function editOperations(edits: readonly Edit[], sets: ReadonlyMap<string, TableSet>): Transaction {
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
  readonly first: Transaction;
  /** After them: the rules that look them up. */
  readonly last: Transaction;
}

/** From one table to another that has more of the same kind. */
export function restructure(before: Ruleset, after: Ruleset): Restructuring {
  if (before === after) return { first: [], last: [] };
  const newSets = without(after.sets, before.sets);
  return {
    first: [
      ...newSets.map((set): Operation => ({ kind: 'addSet', set })),
      ...addChains(without(after.chains, before.chains)),
    ],
    last: amendChains(before, after),
  };
}

/**
 * From one table to another that has less of the same kind: what is looked up or led to by nothing but rules that go.
 * It can be cut anywhere and sent in parts.
 */
export function removal(before: Ruleset, after: Ruleset): Transaction {
  return [
    ...amendChains(before, after),
    ...without(before.chains, after.chains).flatMap(({ name }): Operation[] => [
      { kind: 'flushChain', name },
      { kind: 'deleteChain', name },
    ]),
    ...without(before.sets, after.sets).map(({ name }): Operation => ({ kind: 'deleteSet', name })),
  ];
}

function without<T extends { readonly name: string }>(all: readonly T[], others: readonly T[]): readonly T[] {
  const names = new Set(others.map(({ name }) => name));
  return all.filter(({ name }) => !names.has(name));
}

function amendChains(before: Ruleset, after: Ruleset): Transaction {
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
function amendChain(before: Chain, after: Chain): Transaction {
  if (!after.isUnordered) return rewriteChain(after);
  const chain = after.name;
  const isIn = (rule: Rule, { rules }: Chain): boolean => rules.some((other) => deepEqual(rule, other));
  return [
    ...before.rules
      .filter((rule) => !isIn(rule, after))
      .map((rule): Operation => ({ kind: 'deleteRule', chain, rule })),
    ...after.rules
      .filter((rule) => !isIn(rule, before))
      .map((rule): Operation => ({ kind: 'addRule', chain, rule })),
  ];
}
