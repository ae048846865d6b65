/** Everything that a plan needs, as one restore per table: for people to read, and for a kernel that has nothing yet. */
import type { Plan } from '../../../plan/types.ts';
import {
  type ChainRef,
  compileAll,
  type CompileOptions,
  isSameChain,
  type Layout,
  type SharedRule,
} from './fragment.ts';
import { type Piece, piece, printStep, type Step } from './edit.ts';
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

export interface TableRule extends ChainRef {
  readonly rule: string;
}

export function wholeRules(layout: Layout, plan: Plan, options: CompileOptions): WholeRules {
  const { foreignChains, jumps } = layout;
  const isOwn = ({ table }: Step, chain: string): boolean =>
    ![...foreignChains, ...jumps].some((other) => isSameChain(other, { table, chain }));
  const steps = wholeSteps(layout, plan, options).map((step) => ({
    ...step,
    pieces: step.pieces.map(
      ({ owner, writes, adds }): Piece =>
        piece(owner, {
          writes: writes.filter(({ name }) => isOwn(step, name)),
          adds: adds.filter(({ chain }) => isOwn(step, chain)),
        }),
    ),
  }));
  return {
    restore: printAll(steps),
    sharedChains: foreignChains,
    sharedRules: layout.base(options).foreign.map(tableRule),
    jumps: jumps.map(tableRule),
  };
}

/** With the jumps, for a kernel that has none of it. */
export function wholeRestore(layout: Layout, plan: Plan, options: CompileOptions): string {
  return printAll(wholeSteps(layout, plan, options));
}

function wholeSteps(layout: Layout, plan: Plan, options: CompileOptions): readonly Step[] {
  const fragments = compileAll(layout, plan.servicePorts, options);
  const desired = { layout, options, base: layout.base(options), fragments };
  return [...fullSteps(new Map(), desired)].filter((step) => step !== undefined);
}

function printAll(steps: readonly Step[]): string {
  return TABLES.map((table) => printStep(inOne(table, steps))).join('');
}

function inOne(table: Step['table'], steps: readonly Step[]): Step {
  return { table, pieces: steps.filter((step) => step.table === table).flatMap((step) => step.pieces) };
}

function tableRule({ table, chain, rule }: SharedRule): TableRule {
  return { table, chain, rule: printRule(rule) };
}
