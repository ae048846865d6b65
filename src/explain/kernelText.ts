/** The kernel's word on a packet, piece by piece: `explain` prints the pieces, the page shows them. */
import { countOf } from './finding.ts';
import type { KernelExplanation, KernelOutcome, KernelStep } from './types.ts';
import { FOREIGN_RULE, percent, printOutcome } from './words.ts';

/** `in the kernel (nftables, read 4 ms ago: as planned)`; without `now`, how long the reading took. */
export function kernelTitle(
  { mode, asPlanned, readAt, readMs }: KernelExplanation,
  now: number | undefined,
): string {
  const state = asPlanned === undefined ? 'not evaluated' : asPlanned ? 'as planned' : 'NOT as planned';
  const age = now === undefined ? `in ${printMs(readMs)}` : `${printMs(Math.max(0, now - readAt))} ago`;
  return `in the kernel (${mode}, read ${age}: ${state})`;
}

/** `33 % forwarded to 10.244.1.11:9090, not masqueraded` */
export function outcomeTitle(outcome: KernelOutcome): string {
  return `${percent(outcome.probability)} ${printOutcome(outcome)}`;
}

export const BY_AFFINITY = 'where its affinity entry sends this client';
export const NO_RULE = 'no rule matches';

/** Steps that follow each other at one hook and in one table. */
export function stagesOf(steps: readonly KernelStep[]): readonly (readonly KernelStep[])[] {
  const stages: KernelStep[][] = [];
  for (const step of steps) {
    const stage = stages.at(-1);
    if (stage?.[0]?.hook === step.hook && stage[0].table === step.table) stage.push(step);
    else stages.push([step]);
  }
  return stages;
}

/** `[any-1 { 10.96.0.1 . tcp . 80 }]` */
export function foundWords({ found }: KernelStep): string {
  return found.length === 0 ? '' : `[${found.join('; ')}]`;
}

/** `12 packets`, `another program's rule` */
export function remarksOf({ packets, isForeign }: KernelStep): readonly string[] {
  return [
    ...(packets === undefined ? [] : [countOf(packets, 'packet')]),
    ...(isForeign === true ? [FOREIGN_RULE] : []),
  ];
}

/** `4 ms`, `1.2 s` */
export function printMs(ms: number): string {
  if (ms < 1) return '1 ms';
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 120_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  return ms < 7_200_000 ? `${Math.round(ms / 60_000)} min` : `${Math.round(ms / 3_600_000)} h`;
}
