/** Which endpoints of a service port this node may use, and for what. */
import type { Endpoint } from '../model/endpoint.ts';
import { type ServicePort, usesClusterEndpoints, usesLocalEndpoints } from '../model/servicePort.ts';

export interface Selection {
  readonly cluster: readonly Endpoint[];
  readonly local: readonly Endpoint[];
  /** Some endpoint could serve, here or on another node. */
  readonly hasAny: boolean;
}

export interface Locality {
  readonly nodeName: string;
  readonly zone: string | undefined;
}

const EMPTY: Selection = { cluster: [], local: [], hasAny: false };

export function selectEndpoints(
  port: ServicePort,
  endpoints: readonly Endpoint[],
  locality: Locality,
): Selection {
  if (endpoints.length === 0) return EMPTY;
  const cluster = usesClusterEndpoints(port) ? selectCluster(endpoints, locality) : [];
  if (!usesLocalEndpoints(port)) return { cluster, local: [], hasAny: cluster.length > 0 };
  return {
    cluster,
    local: readyElseTerminating(endpoints.filter((endpoint) => endpoint.isLocal)),
    hasAny: endpoints.some((endpoint) => endpoint.ready || isDraining(endpoint)),
  };
}

function selectCluster(endpoints: readonly Endpoint[], locality: Locality): readonly Endpoint[] {
  const ready = endpoints.filter((endpoint) => endpoint.ready);
  return ready.length > 0 ? nearest(ready, locality) : endpoints.filter(isDraining);
}

function readyElseTerminating(endpoints: readonly Endpoint[]): readonly Endpoint[] {
  const ready = endpoints.filter((endpoint) => endpoint.ready);
  return ready.length > 0 ? ready : endpoints.filter(isDraining);
}

/** No longer ready, still able to answer: better than nobody. */
function isDraining(endpoint: Endpoint): boolean {
  return !endpoint.ready && endpoint.serving && endpoint.terminating;
}

export type TopologyMode = 'same-node' | 'same-zone' | 'none';

/** Hints count only if every ready endpoint has them: a partial picture would overload the few that do. */
export function topologyMode(ready: readonly Endpoint[], locality: Locality): TopologyMode {
  if (isHinted(ready, (endpoint) => endpoint.nodeHints, locality.nodeName)) return 'same-node';
  // A node without a zone is in the zone "", for which the API server accepts hints too.
  if (isHinted(ready, (endpoint) => endpoint.zoneHints, locality.zone ?? '')) return 'same-zone';
  return 'none';
}

function isHinted(
  ready: readonly Endpoint[],
  hintsOf: (endpoint: Endpoint) => readonly string[],
  here: string,
): boolean {
  return (
    ready.every((endpoint) => hintsOf(endpoint).length > 0) &&
    ready.some((endpoint) => hintsOf(endpoint).includes(here))
  );
}

function nearest(ready: readonly Endpoint[], locality: Locality): readonly Endpoint[] {
  switch (topologyMode(ready, locality)) {
    case 'same-node':
      return ready.filter((endpoint) => endpoint.nodeHints.includes(locality.nodeName));
    case 'same-zone':
      return ready.filter((endpoint) => endpoint.zoneHints.includes(locality.zone ?? ''));
    case 'none':
      return ready;
  }
}
