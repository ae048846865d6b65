/** What somebody who watches a family's proxy is told: metrics and health live on this. */
import type { SyncAttempt } from '../modes/iptables/reconcile.ts';
import type { Plan, PlanChange } from '../plan/types.ts';
import type { SyncOutcome } from './proxier.ts';

export interface FamilyObserver {
  /** The loop turns; nothing is written yet. */
  started(): void;
  /** A service was told of; so many have changes that are not applied yet. */
  serviceEvent(pending: number): void;
  endpointEvent(): void;
  /** A sync is wanted. */
  queued(): void;
  /** What had changed is in the plan now. */
  planned(plan: Plan, changes: readonly PlanChange[]): void;
  synced(outcome: SyncOutcome, seconds: number): void;
  failed(error: unknown, seconds: number, attempt: SyncAttempt): void;
}

const nothing = (): void => {};

export const NO_OBSERVER: FamilyObserver = {
  started: nothing,
  serviceEvent: nothing,
  endpointEvent: nothing,
  queued: nothing,
  planned: nothing,
  synced: nothing,
  failed: nothing,
};
