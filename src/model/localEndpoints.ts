/**
 * What health-check node ports tell load balancers: how many distinct addresses on this node are ready to serve.
 *
 * Only ready endpoints count. One that is draining still gets traffic, but no load balancer should send it more.
 */
import { type EndpointsByPort, type MergeLimits, portKey } from './endpointTracker.ts';
import type { Ip } from './ip.ts';
import type { ObjectKey } from './objects.ts';
import type { ServicePort } from './serviceTracker.ts';

/** Endpoints × ports that are looked at; those that are ready and here come first. */
const MOST_COUNTED = 100_000;

interface LocalEndpointInputs {
  portsOf(service: ObjectKey): readonly ServicePort[];
  endpointsOf(service: ObjectKey, limits?: MergeLimits): EndpointsByPort;
}

/** Keeps both maps for the services that have a health-check node port, by looking at those that changed. */
export class LocalEndpoints {
  readonly #inputs: LocalEndpointInputs;
  readonly #ports = new Map<ObjectKey, number>();
  readonly #counts = new Map<ObjectKey, number>();

  constructor(inputs: LocalEndpointInputs) {
    this.#inputs = inputs;
  }

  get ports(): ReadonlyMap<ObjectKey, number> {
    return this.#ports;
  }

  get counts(): ReadonlyMap<ObjectKey, number> {
    return this.#counts;
  }

  /** Looks at these services again; returns whether anything changed. */
  update(services: Iterable<ObjectKey>): boolean {
    let changed = false;
    for (const service of services) {
      const [port = 0] = this.#inputs.portsOf(service).flatMap((each) => each.healthCheckNodePort || []);
      const count = port === 0 ? 0 : this.#count(service);
      changed = set(this.#ports, service, port) || changed;
      changed = set(this.#counts, service, count) || changed;
    }
    return changed;
  }

  /** Addresses, over all ports: a pod that serves two of them is one. */
  #count(service: ObjectKey): number {
    const ports = this.#inputs.portsOf(service);
    const keys = new Set(ports.map(({ portName, protocol }) => portKey(portName, protocol)));
    const perPort = Math.ceil(MOST_COUNTED / ports.length);
    const ips = new Set<Ip>();
    for (const list of this.#inputs.endpointsOf(service, { ports: keys, perPort }).values())
      for (const { ip, ready, isLocal } of list) if (ready && isLocal) ips.add(ip);
    return ips.size;
  }
}

/** 0: absent. */
function set(map: Map<ObjectKey, number>, service: ObjectKey, value: number): boolean {
  if ((map.get(service) ?? 0) === value) return false;
  if (value === 0) map.delete(service);
  else map.set(service, value);
  return true;
}
