/** Whether an address family can be served on this machine, as far as that could be found out. */
import type { Family } from '../model/ip.ts';

export type FamilyAnswer =
  | { readonly state: 'works' }
  /** The machine does not have it. */
  | { readonly state: 'absent'; readonly reason: string; readonly remedy: string }
  /** Nobody knows: the lock was held, a program was killed. */
  | { readonly state: 'unanswered'; readonly reason: string; readonly remedy: string };

export type NotServed = Exclude<FamilyAnswer, { state: 'works' }>;

export interface FamilySupport {
  readonly family: Family;
  readonly answer: FamilyAnswer;
  /** It is served, or may be later. */
  readonly isStartable: boolean;
}

export function servedFamilies(families: readonly FamilySupport[]): readonly Family[] {
  return families.filter(({ answer }) => answer.state === 'works').map(({ family }) => family);
}
