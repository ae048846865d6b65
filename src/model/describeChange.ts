/** What changed of an object, in words for a log line: `EndpointSlice shop/cart-1: endpoint 10.1.0.7 added`. */
import { deepEqual } from './equal.ts';
import type { EndpointSlice, Node, ObjectKey, SliceEndpoint } from './objects.ts';
import type { ServiceChange, ServicePort, ServicePortId } from './serviceTracker.ts';

/** A slice may have a thousand endpoints, and all of them may change at once. */
const MOST_DETAILS = 3;

/** Fields of a Service by what we make of them. */
const FIELDS = {
  clusterIP: 'clusterIP',
  port: 'port',
  nodePort: 'nodePort',
  externalIPs: 'externalIPs',
  loadBalancerIPs: 'status.loadBalancer',
  sourceRanges: 'loadBalancerSourceRanges',
  affinitySeconds: 'sessionAffinity',
  externalPolicyLocal: 'externalTrafficPolicy',
  internalPolicyLocal: 'internalTrafficPolicy',
  healthCheckNodePort: 'healthCheckNodePort',
} as const satisfies Partial<Record<keyof ServicePort, string>>;

export function describeService(key: ObjectKey, { previous, current }: ServiceChange): string {
  if (previous.length === 0) return `Service ${key} added`;
  if (current.length === 0) return `Service ${key} removed`;
  const fields = changedFields(previous, current);
  return fields.length === 0 ? `Service ${key} changed` : `Service ${key}: ${someOf(fields)} changed`;
}

function changedFields(previous: readonly ServicePort[], current: readonly ServicePort[]): readonly string[] {
  const before = new Map<ServicePortId, ServicePort>(previous.map((port) => [port.id, port]));
  const arePortsOther = previous.length !== current.length || current.some(({ id }) => !before.has(id));
  const fields = new Set(arePortsOther ? ['ports'] : []);
  for (const port of current) {
    const old = before.get(port.id);
    if (!old) continue;
    for (const field of Object.keys(FIELDS) as (keyof typeof FIELDS)[])
      if (!deepEqual(old[field], port[field])) fields.add(FIELDS[field]);
  }
  return [...fields];
}

/** `undefined` where nothing changed that matters. */
export function describeSlice(
  previous: EndpointSlice | undefined,
  current: EndpointSlice | undefined,
): string | undefined {
  const slice = current ?? previous;
  if (!slice) return undefined;
  const name = `EndpointSlice ${slice.namespace}/${slice.name}`;
  if (!previous) return `${name} added (${countOf(slice.endpoints.length)})`;
  if (!current) return `${name} removed`;
  const details = endpointChanges(previous.endpoints, current.endpoints);
  if (!deepEqual(previous.ports, current.ports)) details.unshift('ports changed');
  return details.length === 0 ? undefined : `${name}: ${someOf(details)}`;
}

export function describeNode(previous: Node | undefined, current: Node | undefined): string | undefined {
  if (!previous) return current && `Node ${current.name} added`;
  return current ? `Node ${current.name} changed` : `Node ${previous.name} removed`;
}

function endpointChanges(previous: readonly SliceEndpoint[], current: readonly SliceEndpoint[]): string[] {
  const before = new Map(previous.map((endpoint) => [endpoint.ip, endpoint]));
  const changes: string[] = [];
  for (const endpoint of current) {
    const old = before.get(endpoint.ip);
    before.delete(endpoint.ip);
    if (!old) changes.push(`endpoint ${endpoint.ip} added`);
    else if (!deepEqual(old, endpoint)) changes.push(`endpoint ${endpoint.ip} ${stateOf(old, endpoint)}`);
  }
  for (const ip of before.keys()) changes.push(`endpoint ${ip} removed`);
  return changes;
}

function stateOf(old: SliceEndpoint, { ready, serving, terminating }: SliceEndpoint): string {
  if (terminating && !old.terminating) return serving ? 'terminating' : 'terminating, not serving';
  if (ready !== old.ready) return ready ? 'ready' : 'not ready';
  if (serving !== old.serving) return serving ? 'serving' : 'not serving';
  return 'changed';
}

function someOf(details: readonly string[]): string {
  const shown = details.slice(0, MOST_DETAILS).join(', ');
  const more = details.length - MOST_DETAILS;
  return more > 0 ? `${shown} and ${more} more` : shown;
}

function countOf(endpoints: number): string {
  return `${endpoints} endpoint${endpoints === 1 ? '' : 's'}`;
}
