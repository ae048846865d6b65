/** Counts what wants endpoints on this node and has them only elsewhere, by looking at what changed. */
import type { ObjectKey } from '../../model/objects.ts';
import type { PlanChange, ServicePortPlan } from '../../plan/types.ts';

type Policy = 'internal' | 'external';

export interface NoLocalEndpointCounts {
  readonly internal: number;
  readonly external: number;
}

export class NoLocalEndpoints {
  readonly #byService: Readonly<Record<Policy, Map<ObjectKey, number>>> = {
    internal: new Map(),
    external: new Map(),
  };
  readonly #servicePorts = { internal: 0, external: 0 };

  apply(changes: Iterable<PlanChange>): void {
    for (const { previous, current } of changes) {
      this.#add(previous, -1);
      this.#add(current, 1);
    }
  }

  get servicePorts(): NoLocalEndpointCounts {
    return { ...this.#servicePorts };
  }

  get services(): NoLocalEndpointCounts {
    return { internal: this.#byService.internal.size, external: this.#byService.external.size };
  }

  #add(port: ServicePortPlan | undefined, by: 1 | -1): void {
    if (!port) return;
    // Without any endpoint a packet is rejected, so a drop means that there are some elsewhere.
    if (port.internal.outside.verdict === 'drop') this.#count('internal', port.service, by);
    // Only the Local policy tells pods from others; a service without any way in from outside drops everybody.
    const { pod, outside } = port.external;
    if (outside.verdict === 'drop' && pod.verdict !== 'drop') this.#count('external', port.service, by);
  }

  #count(policy: Policy, service: ObjectKey, by: 1 | -1): void {
    this.#servicePorts[policy] += by;
    const ofService = this.#byService[policy];
    const left = (ofService.get(service) ?? 0) + by;
    if (left === 0) ofService.delete(service);
    else ofService.set(service, left);
  }
}
