/** Whether an address family can be served on this machine, as far as somebody could ask. */
import type { Family } from '../model/ip.ts';

export type FamilyAnswer =
  | { readonly state: 'works' }
  /** The machine does not have it. */
  | { readonly state: 'absent'; readonly reason: string; readonly remedy: string }
  /** Nobody knows: the lock was held, a program was killed. */
  | { readonly state: 'unanswered'; readonly reason: string; readonly remedy: string };

export type NotServed = Exclude<FamilyAnswer, { state: 'works' }>;

export interface LeftOutFamily {
  readonly family: Family;
  readonly answer: NotServed;
}
