/** A service's explanation: of one that takes long, first the plan alone, then with what the kernel does. */
import { useMemo, useState } from 'preact/hooks';
import type { ServiceExplanation, WatchEvent } from '../../../src/explain/types.ts';
import { apiPath, askJson } from '../api.ts';
import { type Answer, useAnswer } from '../useAnswer.ts';
import { withKernelOf } from './serviceMerge.ts';

/** Up to this, one answer is enough. */
const SLOW_MS = 250;

interface ServiceAnswer {
  readonly answer: Answer<ServiceExplanation>;
  /** The kernel's word is on its way. */
  readonly isWalking: boolean;
}

export function useServiceAnswer(service: string, isTouched: (event: WatchEvent) => boolean): ServiceAnswer {
  const names = ['explain', ...service.split('/')];
  const [isSlow, setIsSlow] = useState(true);
  const plan = useAnswer<ServiceExplanation>(
    isSlow ? apiPath(names, { kernel: 'none' }) : undefined,
    isTouched,
  );
  const whole = useAnswer<ServiceExplanation>(apiPath(names), isTouched, async (path, signal) => {
    const startedAt = performance.now();
    const value = await askJson<ServiceExplanation>(path, signal);
    setIsSlow(performance.now() - startedAt > SLOW_MS);
    return value;
  });
  const answer = useMemo(() => (isSlow ? later(plan, whole) : whole), [isSlow, plan, whole]);
  return { answer, isWalking: isSlow && whole.kind === 'loading' };
}

function later(
  plan: Answer<ServiceExplanation>,
  whole: Answer<ServiceExplanation>,
): Answer<ServiceExplanation> {
  if (plan.kind !== 'here' || plan.failure) return whole;
  if (whole.kind === 'loading') return plan;
  if (whole.kind === 'failed' || whole.failure || plan.at <= whole.at) return whole;
  return { ...plan, value: withKernelOf(plan.value, whole.value) };
}
