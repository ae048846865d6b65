/** The whole table for a plan, as one who starts from nothing would write it. */
import type { Plan } from '../../../plan/types.ts';
import { fixedElements, type NftSettings } from './settings.ts';
import { compileServicePort } from './compile.ts';
import { printTable } from './print.ts';
import type { Element, Ruleset } from './rule.ts';
import { rulesetOf } from './ruleset.ts';
import { Tally } from './tally.ts';

export interface WholeTable {
  readonly ruleset: Ruleset;
  /** By the name of their set. */
  readonly elements: ReadonlyMap<string, readonly Element[]>;
}

export function wholeTable(plan: Plan, settings: NftSettings): WholeTable {
  const { family, view } = plan;
  const options = { ...settings, family, view };
  const tally = new Tally();
  const own: Element[] = [];
  for (const port of plan.servicePorts.values()) {
    const fragment = compileServicePort(port, options);
    tally.add(fragment);
    own.push(...fragment.elements);
  }
  const elements = new Map<string, Element[]>();
  for (const element of [...tally.elements(), ...fixedElements(options), ...own]) {
    const ofSet = elements.get(element.set);
    if (ofSet) ofSet.push(element);
    else elements.set(element.set, [element]);
  }
  return { ruleset: rulesetOf(tally.shape(settings.serviceCidrs.length > 0), options), elements };
}

/** As `nft -f` takes it. */
export function printWholeTable(plan: Plan, settings: NftSettings): string {
  const { ruleset, elements } = wholeTable(plan, settings);
  return printTable(ruleset, elements, plan.family);
}
