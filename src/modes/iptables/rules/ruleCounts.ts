/** How many rules are ours, by table. Kept by adding and taking away, so that nobody has to count. */
import type { BaseFragment, Fragment } from './fragment.ts';
import type { Table } from './rule.ts';

export type RuleCounts = Readonly<Record<Table, number>>;

export function noRules(): Record<Table, number> {
  return { filter: 0, nat: 0, mangle: 0 };
}

export function addFragment(counts: Record<Table, number>, fragment: Fragment, by: 1 | -1): void {
  for (const { table, rules } of fragment.chains) counts[table] += by * rules.length;
  for (const { table } of fragment.shared) counts[table] += by;
}

export function addBase(counts: Record<Table, number>, base: BaseFragment): void {
  addFragment(counts, { chains: base.chains, shared: [...base.tail, ...base.adopted] }, 1);
}
