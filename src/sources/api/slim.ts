/** Projected objects, sharing what they have in common with others. */
import type { EndpointSlice, Service, SliceEndpoint, SlicePort } from '../../model/objects.ts';
import type { Interner } from './interner.ts';

export function slimService(value: Service, interner: Interner): Service {
  const ports = value.ports.map((port) => ({
    name: interner.text(port.name),
    protocol: port.protocol,
    port: port.port,
    nodePort: port.nodePort,
  }));
  const id = ports.map(({ name, protocol, port, nodePort }) => `${name} ${protocol} ${port} ${nodePort}`);
  return {
    ...value,
    namespace: interner.text(value.namespace),
    ports: interner.list(`service ${id.join()}`, ports),
  };
}

export function slimEndpointSlice(value: EndpointSlice, interner: Interner): EndpointSlice {
  return {
    namespace: interner.text(value.namespace),
    name: value.name,
    // Nearly each is another: sharing would keep the names of services that are long gone.
    service: value.service,
    family: value.family,
    ports: slimPorts(value.ports, interner),
    endpoints: value.endpoints.map((endpoint) => slimEndpoint(endpoint, interner)),
    triggerTime: value.triggerTime,
  };
}

function slimPorts(ports: readonly SlicePort[], interner: Interner): readonly SlicePort[] {
  const id = ports.map(({ name, protocol, port }) => `${name} ${protocol} ${port}`);
  return interner.list(`slice ${id.join()}`, ports);
}

function slimEndpoint(endpoint: SliceEndpoint, interner: Interner): SliceEndpoint {
  return {
    ip: endpoint.ip,
    nodeName: endpoint.nodeName === undefined ? undefined : interner.text(endpoint.nodeName),
    ready: endpoint.ready,
    serving: endpoint.serving,
    terminating: endpoint.terminating,
    zoneHints: slimNames(endpoint.zoneHints, interner),
    nodeHints: slimNames(endpoint.nodeHints, interner),
  };
}

function slimNames(names: readonly string[], interner: Interner): readonly string[] {
  return names.length === 0 ? names : interner.list(`names ${names.join()}`, names);
}
