/** Who has an address: service ports that answer there, and endpoints of this node. */
import type { Ip } from '../model/ip.ts';
import type { Protocol } from '../model/objects.ts';
import type { EndpointAddress, FoundFrontend, Plan } from './types.ts';

/** At any port. Looks through all services, which takes a millisecond or two for 30,000. */
export function* frontendsAt(plan: Plan, address: Ip): Generator<FoundFrontend> {
  for (const servicePort of plan.servicePorts.values())
    for (const frontend of servicePort.frontends)
      if (frontend.address === address) yield { servicePort, frontend };
}

/** Whether any service has this endpoint on this node, usable or not. Looks through all services too. */
export function isLocalEndpoint(plan: Plan, protocol: Protocol, { ip, port }: EndpointAddress): boolean {
  for (const { protocol: other, localEndpoints } of plan.servicePorts.values())
    if (other === protocol && localEndpoints?.some((each) => each.ip === ip && each.port === port))
      return true;
  return false;
}
