/** What differs between two plans of one family, service port by service port, in words. */
import { deepEqual } from '../model/equal.ts';
import type { ObjectKey } from '../model/objects.ts';
import type { ServicePortId } from '../model/serviceTracker.ts';
import { describePlanChange } from '../plan/describePlan.ts';
import type { Plan } from '../plan/types.ts';

interface PlanDifferences {
  /** Service ports that are not the same. */
  readonly ports: ReadonlySet<ServicePortId>;
  /** `shop/web:http/TCP: endpoint 10.1.0.7:80 added to cluster` */
  readonly byService: ReadonlyMap<ObjectKey, readonly string[]>;
}

export function planDifferences(from: Plan, to: Plan): PlanDifferences {
  const ports = new Set<ServicePortId>();
  const byService = new Map<ObjectKey, string[]>();
  for (const id of new Set([...from.servicePorts.keys(), ...to.servicePorts.keys()])) {
    const previous = from.servicePorts.get(id);
    const current = to.servicePorts.get(id);
    if (deepEqual(previous, current)) continue;
    ports.add(id);
    const service = (current ?? previous)?.service ?? '';
    const words = byService.get(service) ?? [];
    words.push(...describePlanChange({ id, previous, current }));
    byService.set(service, words);
  }
  return { ports, byService };
}
