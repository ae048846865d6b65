/** Words that several answers use. They know nothing of plans and kernels, so that the page can say them too. */
import type { FrontendKind } from '../plan/types.ts';
import type { KernelOutcome, Verdict } from './types.ts';

export const KIND_WORDS: Readonly<Record<FrontendKind, string>> = {
  clusterIP: 'cluster IP',
  externalIP: 'external IP',
  loadBalancerIP: 'load-balancer IP',
  nodePort: 'node port',
};

export const OUTCOME_WORDS: Readonly<Record<Verdict, string>> = {
  forwarded: 'forwarded',
  rejected: 'rejected',
  dropped: 'dropped',
  passed: 'left alone: no rule takes it to a service',
};

/** `dropped by filter FORWARD: -s 10.0.0.0/8 -j DROP (another program's rule)` */
export function printOutcome({ verdict, to, masquerade, steps }: KernelOutcome): string {
  if (verdict === 'forwarded') return `forwarded to ${to ?? ''}, ${printMasquerade(masquerade)}`;
  const last = steps.at(-1);
  if (verdict === 'passed' || !last) return OUTCOME_WORDS[verdict];
  const foreign = last.isForeign === true ? ` (${FOREIGN_RULE})` : '';
  return `${OUTCOME_WORDS[verdict]} by ${last.table} ${last.chain}: ${last.rule}${foreign}`;
}

export const FOREIGN_RULE = "another program's rule";

export function printMasquerade(masquerade: boolean | undefined): string {
  return masquerade === true ? 'masqueraded' : 'not masqueraded';
}

export function percent(probability: number): string {
  const rounded = probability * 100;
  const digits = rounded >= 10 || Number.isInteger(rounded) ? 0 : rounded >= 1 ? 1 : 2;
  return `${rounded.toFixed(digits)} %`;
}
