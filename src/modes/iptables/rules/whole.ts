/** Everything that a plan needs, as one restore per table: for people to read, and for a kernel that has nothing yet. */
import type { Plan } from '../../../plan/types.ts';
import { type ChainRef, compileAll, type CompileOptions, type Layout, type SharedRule } from './fragment.ts';
import { printStep } from './edit.ts';
import { fullSteps } from './resync.ts';
import { TABLES } from './rule.ts';
import { printRule } from './print.ts';

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
  const { foreignChains, jumps } = layout;
  const base = layout.base(options);
  const own = { ...layout, jumps: [], foreignChains: [], base: () => ({ ...base, foreign: [] }) };
  return {
    restore: wholeRestore(own, plan, options),
    sharedChains: foreignChains,
    sharedRules: base.foreign.map(tableRule),
    jumps: jumps.map(tableRule),
  };
}

/** With the jumps, for a kernel that has none of it. */
export function wholeRestore(layout: Layout, plan: Plan, options: CompileOptions): string {
  const fragments = compileAll(layout, plan.servicePorts, options);
  const steps = [...fullSteps(new Map(), { layout, options, fragments })].filter(
    (step) => step !== undefined,
  );
  return TABLES.map((table) => {
    const pieces = steps.filter((step) => step.table === table).flatMap((step) => step.pieces);
    return printStep({ table, pieces });
  }).join('');
}

function tableRule({ table, chain, rule }: SharedRule): TableRule {
  return { table, chain, rule: printRule(rule) };
}
