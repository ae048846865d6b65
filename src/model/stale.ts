/**
 * Connections that a change leaves pointing at nothing.
 *
 * TCP finds out by itself. A datagram flow does not: the kernel remembers where its first packet went, so somebody
 * has to make it forget.
 */
import { type EndpointsByPort, type PortKey, portKey } from './endpoint.ts';
import type { EndpointChange } from './endpointTracker.ts';
import type { Ip } from './ip.ts';
import type { ObjectKey } from './objects.ts';
import type { ServicePort } from './servicePort.ts';
import type { ServiceChange } from './serviceTracker.ts';

export interface StaleConnections {
  /** Endpoints that are gone: flows to them are stale. */
  readonly endpoints: readonly StaleEndpoint[];
  /** Service ports that went from none to some endpoints: flows that met no rule are stale. */
  readonly revivedPorts: readonly StalePort[];
  /** Addresses of datagram service ports that no longer exist. */
  readonly clusterIPs: readonly Ip[];
}

export interface StaleEndpoint {
  readonly service: ObjectKey;
  readonly port: PortKey;
  readonly endpoint: string;
}

export interface StalePort {
  readonly service: ObjectKey;
  readonly port: PortKey;
}

export function joinStale(parts: readonly StaleConnections[]): StaleConnections {
  return {
    endpoints: parts.flatMap(({ endpoints }) => endpoints),
    revivedPorts: parts.flatMap(({ revivedPorts }) => revivedPorts),
    clusterIPs: parts.flatMap(({ clusterIPs }) => clusterIPs),
  };
}

export function detectStaleConnections(
  services: ReadonlyMap<ObjectKey, ServiceChange>,
  endpoints: ReadonlyMap<ObjectKey, EndpointChange>,
): StaleConnections {
  const changes = [...endpoints];
  return {
    endpoints: changes.flatMap(([service, change]) => vanished(service, change.previous, change.current)),
    revivedPorts: changes.flatMap(([service, change]) => revived(service, change.previous, change.current)),
    clusterIPs: [...services.values()].flatMap(({ previous, current }) =>
      previous
        .filter((port) => isDatagram(port) && !isStillThere(port, current))
        .map((port) => port.clusterIP),
    ),
  };
}

function vanished(service: ObjectKey, previous: EndpointsByPort, current: EndpointsByPort): StaleEndpoint[] {
  return [...previous].flatMap(([port, before]) => {
    const after = new Set(current.get(port)?.map((endpoint) => endpoint.key));
    return before
      .filter((endpoint) => !after.has(endpoint.key))
      .map((endpoint) => ({ service, port, endpoint: endpoint.key }));
  });
}

function revived(service: ObjectKey, previous: EndpointsByPort, current: EndpointsByPort): StalePort[] {
  return [...current.keys()].filter((port) => !previous.has(port)).map((port) => ({ service, port }));
}

function isDatagram(port: ServicePort): boolean {
  return port.protocol !== 'TCP';
}

function isStillThere(port: ServicePort, current: readonly ServicePort[]): boolean {
  const key = portKey(port.portName, port.protocol);
  return current.some(
    (other) => portKey(other.portName, other.protocol) === key && other.clusterIP === port.clusterIP,
  );
}
