/**
 * Elements that somebody else took out or put in. The kernel tells which, so that nothing has to be read: reading a map
 * of a hundred thousand elements takes the kernel most of a second, and mending one of them no time at all.
 */
import type { ServicePortPlan } from '../../../plan/types.ts';
import { sameValue } from './edit.ts';
import { printKey } from './print.ts';
import type { Element, TableSet } from './rule.ts';
import { elementOperations, type Transaction } from './transaction.ts';

export interface ForeignElement {
  readonly element: Element;
  /** Whether it is in the table now. */
  readonly isThere: boolean;
}

/** `wanted`: what the table should have for a set and a key. */
export function mending(
  foreign: readonly ForeignElement[],
  sets: ReadonlyMap<string, TableSet>,
  wanted: (set: string, element: Element) => Element | undefined,
): Transaction {
  const removes: Element[] = [];
  const adds: Element[] = [];
  for (const { element, isThere } of lastOfEach(foreign)) {
    const set = sets.get(element.set);
    if (!set || set.remembers !== undefined) continue;
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

/** Whether elements of a service port may be among them: told by ports alone, so that few have to be compiled. */
export function concernedBy(foreign: readonly ForeignElement[]): (port: ServicePortPlan) => boolean {
  // Where a key has two ports, the first is the endpoint's.
  const ports = new Set(foreign.map(({ element: { key } }) => key.secondPort ?? key.port));
  return ({ frontends }) => frontends.some(({ port }) => ports.has(port));
}
