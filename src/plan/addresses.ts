/** Who has an address: service ports that answer there, and endpoints of this node. */
import type { Ip } from '../model/ip.ts';
import type { Protocol } from '../model/objects.ts';
import type { ServicePortId } from '../model/serviceTracker.ts';
import type { EndpointAddress, Plan, ServicePortPlan } from './types.ts';

type Frontends = Pick<ServicePortPlan, 'frontends'>;

/** Service ports by their addresses. Most addresses have one, which stands for itself. */
export class AddressIndex {
  readonly #ids = new Map<Ip, ServicePortId | Set<ServicePortId>>();

  at(address: Ip): Iterable<ServicePortId> {
    const found = this.#ids.get(address);
    if (found === undefined) return NOBODY;
    return typeof found === 'string' ? [found] : found;
  }

  replace(id: ServicePortId, previous: Frontends | undefined, current: Frontends | undefined): void {
    for (const { address } of previous?.frontends ?? []) if (address !== undefined) this.#delete(address, id);
    for (const { address } of current?.frontends ?? []) if (address !== undefined) this.#add(address, id);
  }

  #add(address: Ip, id: ServicePortId): void {
    const found = this.#ids.get(address);
    if (found === undefined || found === id) this.#ids.set(address, id);
    else if (typeof found === 'string') this.#ids.set(address, new Set([found, id]));
    else found.add(id);
  }

  #delete(address: Ip, id: ServicePortId): void {
    const found = this.#ids.get(address);
    if (found === id) this.#ids.delete(address);
    if (found === undefined || typeof found === 'string') return;
    found.delete(id);
    if (found.size === 0) this.#ids.delete(address);
  }
}

const NOBODY: readonly ServicePortId[] = [];

/** Whether any service has this endpoint on this node, usable or not. Looks through all services. */
export function isLocalEndpoint(plan: Plan, protocol: Protocol, { ip, port }: EndpointAddress): boolean {
  for (const { protocol: other, localEndpoints } of plan.servicePorts.values())
    if (other === protocol && localEndpoints?.some((each) => each.ip === ip && each.port === port))
      return true;
  return false;
}
