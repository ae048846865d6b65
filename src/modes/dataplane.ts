/**
 * What the proxy asks of one address family of a mode: write this plan into the kernel. Everything behind it — chains, sets,
 * transactions, what is read and when — is the mode's own, so tests of a mode go through here.
 */
import type { ServicePortId } from '../model/serviceTracker.ts';
import type { Plan } from '../plan/types.ts';
import type { KernelWriter } from '../proxy/proxier.ts';
import type { SyncReport } from '../proxy/report.ts';

export interface Dataplane {
  /** Writes the difference. `ids`: the service ports that changed since the last successful call. */
  apply(plan: Plan, ids: readonly ServicePortId[]): Promise<SyncReport>;
  /** Writes everything: at a start, or when the state of the kernel is in doubt. */
  rewrite(plan: Plan): Promise<SyncReport>;
}

export function dataplaneOf(writer: KernelWriter | (KernelWriter & Dataplane)): Dataplane {
  if ('rewrite' in writer) return writer;
  return {
    apply: (plan, ids) => writer.sync(plan, ids),
    rewrite: (plan) => {
      writer.requestFull();
      return writer.sync(plan, [...plan.servicePorts.keys()]);
    },
  };
}
