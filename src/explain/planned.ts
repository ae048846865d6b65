/** What is planned for a packet: what `decide` says, or what the mode is known to do instead. */
import { deviationOf, type FoundDeviation, mechanismOf } from '../modes/deviations.ts';
import { type Decision, decide, type ForwardTarget, type Packet } from '../plan/decide.ts';
import type { FamilySubject, Subject } from './subject.ts';
import type { Verdict } from './types.ts';

export interface Planned {
  readonly verdict: Verdict;
  /** Each as likely as the others; of what is forwarded. */
  readonly targets: readonly ForwardTarget[];
  readonly decision: Decision;
  readonly deviation: FoundDeviation | undefined;
}

type PlannedSubject = Pick<Subject, 'mode' | 'layout' | 'serviceCidrs'>;

export function plannedFor(
  { mode, layout, serviceCidrs }: PlannedSubject,
  { plan, host }: Pick<FamilySubject, 'plan' | 'host'>,
  packet: Packet,
): Planned {
  const decision = decide(plan, packet, host);
  const mechanism = mechanismOf(mode, layout);
  const deviation = deviationOf(mechanism, plan, packet, host, { decision, serviceCidrs });
  if (deviation) {
    const { instead } = deviation;
    if (typeof instead === 'string')
      return { verdict: VERDICT_OF[instead], targets: [], decision, deviation };
    return { verdict: 'forwarded', targets: instead.targets, decision, deviation };
  }
  const targets = decision.verdict === 'forward' ? decision.targets : [];
  return { verdict: VERDICT_OF[decision.verdict], targets, decision, deviation };
}

export const VERDICT_OF: Readonly<Record<Decision['verdict'], Verdict>> = {
  forward: 'forwarded',
  reject: 'rejected',
  drop: 'dropped',
  pass: 'passed',
};
