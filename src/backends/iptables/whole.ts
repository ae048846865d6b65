/** Everything that a plan needs, as one restore per table: for people to read, and for a kernel that has nothing yet. */
import type { Plan } from '../../plan/types.ts';
import { compileAll } from './compiled.ts';
import { printStep, type Step } from './edit.ts';
import type { CompileOptions, Layout } from './fragment.ts';
import { fullSteps } from './full.ts';
import { TABLES } from './incremental.ts';

export function wholeRestore(layout: Layout, plan: Plan, options: CompileOptions): string {
  const fragments = compileAll(layout, plan, options);
  const desired = { layout, options, base: layout.base(options), fragments };
  const steps = [...fullSteps(new Map(), desired)].filter((step) => step !== undefined);
  return TABLES.map((table) => printStep(inOne(table, steps))).join('');
}

function inOne(table: Step['table'], steps: readonly Step[]): Step {
  return { table, pieces: steps.filter((step) => step.table === table).flatMap((step) => step.pieces) };
}
