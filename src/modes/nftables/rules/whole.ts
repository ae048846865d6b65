/** The whole table for a plan, written from nothing: for people to read, for `nft -f`, and for the kernel's opinion. */
import type { Plan } from '../../../plan/types.ts';
import { compileElements } from './compile.ts';
import { printTable } from './print.ts';
import { ReferenceCounts } from './referenceCounts.ts';
import type { Element, Ruleset } from './rule.ts';
import { fixedElements, type NftSettings, rulesetOf } from './ruleset.ts';

interface WholeTable {
  readonly ruleset: Ruleset;
  /** By the name of their set. */
  readonly elements: ReadonlyMap<string, readonly Element[]>;
}

export function wholeTable(plan: Plan, settings: NftSettings): WholeTable {
  const { family, view } = plan;
  const options = { ...settings, family, view };
  const counts = new ReferenceCounts();
  const own: Element[] = [];
  for (const port of plan.servicePorts.values()) {
    const fragment = compileElements(port, options);
    counts.add(fragment);
    own.push(...fragment.elements);
  }
  const elements = new Map<string, Element[]>();
  for (const element of [...counts.elements(), ...fixedElements(options), ...own]) {
    const ofSet = elements.get(element.set);
    if (ofSet) ofSet.push(element);
    else elements.set(element.set, [element]);
  }
  return { ruleset: rulesetOf(counts.shape(settings.serviceCidrs.length > 0), options), elements };
}

export function printWholeTable(plan: Plan, settings: NftSettings): string {
  const { ruleset, elements } = wholeTable(plan, settings);
  return printTable(ruleset, elements, plan.family);
}
