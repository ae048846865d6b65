/** `services` and `endpoints`: one row for each. */
import type { EndpointSlice, ObjectKey } from '../model/objects.ts';
import { endpointCountOf, forEachState } from '../model/packedSlice.ts';
import type { ServicePort } from '../model/serviceTracker.ts';
import { printCut } from '../plan/capacity.ts';
import { printFrontendKey } from '../plan/claims.ts';
import { detailsOf, PortEndpoints } from './endpoints.ts';
import { listed } from './finding.ts';
import { servicePortsOf } from './resolve.ts';
import type { FamilySubject, Subject } from './subject.ts';
import type { EndpointRow, ServiceRow, ServiceState } from './types.ts';

/** In the order in which they became known; a step for each, so that callers can pause. */
export function* serviceRows(
  subject: Subject,
  options: { readonly namespace?: string } = {},
): Generator<ServiceRow> {
  yield* rowsOf(subject, serviceKeys(subject, options.namespace));
}

/** Of these services; those that do not exist are left out. */
export function* rowsOf(subject: Subject, services: Iterable<ObjectKey>): Generator<ServiceRow> {
  for (const service of services) {
    const row = serviceRow(subject, service);
    if (row) yield row;
  }
}

/** Each once. */
export function* serviceKeys({ families }: Subject, namespace?: string): Generator<ObjectKey> {
  const prefix = namespace === undefined ? '' : `${namespace}/`;
  for (const [index, family] of families.entries()) {
    const before = families.slice(0, index);
    for (const service of family.services())
      if (service.startsWith(prefix) && before.every((other) => other.portsOf(service).length === 0))
        yield service;
  }
}

interface InFamily {
  readonly family: FamilySubject;
  readonly ports: readonly ServicePort[];
}

export function serviceRow(subject: Subject, service: ObjectKey): ServiceRow | undefined {
  const served: InFamily[] = [];
  for (const family of subject.families) {
    const ports = family.portsOf(service);
    if (ports.length > 0) served.push({ family, ports });
  }
  const [first, ...others] = served;
  const port = first?.ports[0];
  if (!first || !port) return undefined;
  const { clusterIP, externalIPs, loadBalancerIPs } = port;
  const isOne = others.length === 0;
  const { state, detail } = conditionOf(served, service);
  // Plain fields: this is made thirty thousand times for one answer, and spreading objects takes half of the time.
  const row: Writable<ServiceRow> = {
    service,
    type: port.type,
    clusterIPs: isOne ? [clusterIP] : served.flatMap(({ ports }) => ports[0]?.clusterIP ?? []),
    externalIPs: isOne ? externalIPs : served.flatMap(({ ports }) => ports[0]?.externalIPs ?? []),
    loadBalancerIPs: isOne ? loadBalancerIPs : served.flatMap(({ ports }) => ports[0]?.loadBalancerIPs ?? []),
    ports: first.ports.map(printPort),
    endpoints: countEndpoints(served, service),
    externalTrafficPolicy: port.externalPolicyLocal ? 'Local' : 'Cluster',
    internalTrafficPolicy: port.internalPolicyLocal ? 'Local' : 'Cluster',
    state,
  };
  if (detail !== undefined) row.detail = detail;
  if (port.affinitySeconds !== undefined) row.affinitySeconds = port.affinitySeconds;
  return row;
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** `80/TCP`, `80:30080/TCP` */
export function printPort({ port, nodePort, protocol }: ServicePort): string {
  return nodePort === 0 ? `${port}/${protocol}` : `${port}:${nodePort}/${protocol}`;
}

/** Of the first family that has any: a pod with two addresses counts once. */
function countEndpoints(served: readonly InFamily[], service: ObjectKey): ServiceRow['endpoints'] {
  for (const { family } of served) {
    const slices = family.slicesOf(service);
    if (slices.some((slice) => endpointCountOf(slice) > 0)) return countIn(slices, family.plan.view.nodeName);
  }
  return { ready: 0, local: 0, all: 0 };
}

function countIn(slices: readonly EndpointSlice[], nodeName: string): ServiceRow['endpoints'] {
  let all = 0;
  let ready = 0;
  let local = 0;
  const seen = slices.length > 1 ? new Set<string>() : undefined;
  for (const slice of slices)
    forEachState(slice, (ip, state) => {
      if (seen?.has(ip)) return;
      seen?.add(ip);
      all++;
      if (!state.ready) return;
      ready++;
      if (nodeName !== '' && state.nodeName === nodeName) local++;
    });
  return { ready, local, all };
}

interface Condition {
  readonly state: ServiceState;
  readonly detail?: string;
}

const OK: Condition = { state: 'ok' };

/** The worst of its ports, in both families. */
function conditionOf(served: readonly InFamily[], service: ObjectKey): Condition {
  let worst = OK;
  for (const { family, ports } of served) {
    for (const port of ports) {
      const condition = portCondition(family, port);
      if (STATE_SEVERITY[condition.state] > STATE_SEVERITY[worst.state]) worst = condition;
    }
    const cuts = family.plan.cutsOf(service);
    if (cuts.length > 0 && STATE_SEVERITY['partly served'] > STATE_SEVERITY[worst.state])
      worst = { state: 'partly served', detail: listed(cuts.map(printCut)) };
  }
  return worst;
}

export const STATE_SEVERITY: Readonly<Record<ServiceState, number>> = {
  ok: 0,
  'partly served': 1,
  'no endpoints': 2,
  'not served': 3,
  refused: 4,
};

export function portCondition({ plan, refused }: FamilySubject, port: ServicePort): Condition {
  const refusal = refused.get(port.id);
  if (refusal !== undefined) return { state: 'refused', detail: refusal };
  const planned = plan.servicePorts.get(port.id);
  if (!planned) return { state: 'not served', detail: `${port.name} is beyond what one Service may have` };
  const denied = plan.denied(port.id);
  const lost = (): readonly string[] =>
    denied.map(({ key, owner }) => `${printFrontendKey(key)} belongs to ${owner}`);
  if (planned.frontends.length === 0) return { state: 'not served', detail: listed(lost()) };
  if (planned.internal.pod.verdict === 'reject')
    return { state: 'no endpoints', detail: `${port.name} has no usable endpoint` };
  const { refusedIPs = [] } = planned;
  if (denied.length + refusedIPs.length === 0) return OK;
  const missing = [...lost(), ...refusedIPs.map((ip) => `${ip} is the API server's address`)];
  return { state: 'partly served', detail: `not served: ${listed(missing)}` };
}

/** All endpoints of a service, port by port. */
export async function endpointRows(subject: Subject, service: string): Promise<readonly EndpointRow[]> {
  const found = await servicePortsOf(subject, { service });
  return found.flatMap(({ family, port }) =>
    portEndpointRows(subject, { family, port }, new PortEndpoints(subject, family, port)),
  );
}

export function portEndpointRows(
  subject: Pick<Subject, 'connectionsOf'>,
  { family: { family, plan }, port }: { readonly family: FamilySubject; readonly port: ServicePort },
  endpoints: PortEndpoints,
): readonly EndpointRow[] {
  const usable = endpoints.all.map((endpoint): EndpointRow => {
    const pools = endpoints.poolsOf(endpoint);
    const leftOut = pools.length === 0 ? endpoints.whyNot(endpoint, poolFor(port)) : undefined;
    return {
      ...endpoints.nameOf(endpoint),
      servicePort: port.id,
      family,
      ready: endpoint.ready,
      serving: endpoint.serving,
      terminating: endpoint.terminating,
      zoneHints: endpoint.zoneHints,
      nodeHints: endpoint.nodeHints,
      pools,
      ...(leftOut && { leftOut }),
      ...subject.connectionsOf?.(family, port.id, endpoint.key),
    };
  });
  const unusable = endpoints.unusable.map(({ endpoint, reason, text }): EndpointRow => {
    const { ip, nodeName, ready, serving, terminating, zoneHints, nodeHints } = endpoint;
    return {
      address: ip,
      ...detailsOf(endpoint),
      isLocal: nodeName !== undefined && nodeName === plan.view.nodeName,
      servicePort: port.id,
      family,
      ready,
      serving,
      terminating,
      zoneHints,
      nodeHints,
      pools: [],
      leftOut: { reason, text },
    };
  });
  return [...usable, ...unusable];
}

/** The pool that most packets use. */
function poolFor({ internalPolicyLocal }: ServicePort): 'cluster' | 'local' {
  return internalPolicyLocal ? 'local' : 'cluster';
}
