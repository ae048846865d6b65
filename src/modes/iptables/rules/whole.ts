/** Everything that a plan needs, as one restore per table: for people to read, and for a kernel that has nothing yet. */
import type { Plan } from '../../../plan/types.ts';
import { printStep } from './edit.ts';
import { type ChainRef, compileAll, type CompileOptions, type Layout, type SharedRule } from './fragment.ts';
import { printRule } from './print.ts';
import { Rewrite } from './rewrite.ts';
import { TABLES } from './rule.ts';

/** In the same tables, by what may be done with it again and again. */
export interface WholeRules {
  /**
   * For `iptables-restore --noflush`: the chains that are Junction's alone. Each is declared, which empties it, so a
   * second restore leaves the same.
   */
  readonly restore: string;
  /** Chains that other programs have rules in too; they may be there. */
  readonly sharedChains: readonly ChainRef[];
  /** Rules at the end of such a chain. */
  readonly sharedRules: readonly TableRule[];
  /**
   * Base-chain jumps, to be inserted in this order. A restore adds them whether they are there or not: it has no
   * conditional operation on rules, and those it has change their number by the same each time.
   */
  readonly jumps: readonly TableRule[];
}

interface TableRule extends ChainRef {
  readonly rule: string;
}

export function wholeRules(layout: Layout, plan: Plan, options: CompileOptions): WholeRules {
  return {
    restore: restoreOf({ ...layout, foreignChains: [] }, plan, options),
    sharedChains: layout.foreignChains,
    sharedRules: layout.base(options).foreign.map(tableRule),
    jumps: layout.jumps.map(tableRule),
  };
}

/** With the jumps, for a kernel that has none of it. */
export function wholeRestore(layout: Layout, plan: Plan, options: CompileOptions): string {
  return restoreOf(layout, plan, options, [...layout.base(options).foreign, ...layout.jumps]);
}

function restoreOf(
  layout: Layout,
  plan: Plan,
  options: CompileOptions,
  foreign: readonly SharedRule[] = [],
): string {
  const fragments = compileAll(layout, plan.servicePorts, options);
  const rewrite = new Rewrite({ layout, options, fragments, names: new Map(), isRefused: () => false });
  const steps = [...rewrite.foundation(), ...rewrite.services(), ...rewrite.entries()];
  return TABLES.map((table) => {
    const pieces = steps.filter((step) => step?.table === table).flatMap((step) => step?.pieces ?? []);
    const others = foreign.filter((each) => each.table === table);
    const chains = new Set(layout.foreignChains.map(({ chain }) => chain));
    const adds = [
      ...others.filter(({ chain }) => chains.has(chain)).map((each) => ({ ...each, place: 'end' as const })),
      // Heads are inserted backwards, and a jump that is listed later belongs nearer to the head.
      ...others
        .filter(({ chain }) => !chains.has(chain))
        .toReversed()
        .map((each) => ({ ...each, place: 'head' as const })),
    ];
    return printStep({ table, pieces: [...pieces, { ...EMPTY, adds }] });
  }).join('');
}

const EMPTY = { owner: undefined, writes: [], removes: [], deletes: [] };

function tableRule({ table, chain, rule }: SharedRule): TableRule {
  return { table, chain, rule: printRule(rule) };
}
