/** From one service port and its endpoints to its part of the plan. This is where policy is decided. */
import type { Endpoint } from '../model/endpointTracker.ts';
import { cidrContains, type Ip } from '../model/ip.ts';
import { type ServicePort, usesClusterEndpoints, usesLocalEndpoints } from '../model/serviceTracker.ts';
import { isReserved } from './view.ts';
import type {
  AllowedSources,
  Frontend,
  FrontendKind,
  NodeView,
  PoolName,
  Route,
  Routes,
  ServicePortPlan,
} from './types.ts';

// Made once: a large cluster has the same few routes ten thousand times.
const REJECT: Route = { verdict: 'reject' };
const DROP: Route = { verdict: 'drop' };
const FORWARD: Readonly<Record<PoolName, { readonly plain: Route; readonly masqueraded: Route }>> = {
  cluster: forwards('cluster'),
  local: forwards('local'),
};
const REJECT_ALL = everyone(REJECT);
const DROP_ALL = everyone(DROP);
const MASQUERADE_ALL = everyone(FORWARD.cluster.masqueraded);

function forwards(pool: PoolName): { readonly plain: Route; readonly masqueraded: Route } {
  return {
    plain: { verdict: 'forward', pool, masquerade: false },
    masqueraded: { verdict: 'forward', pool, masquerade: true },
  };
}

export function planServicePort(
  port: ServicePort,
  endpoints: readonly Endpoint[],
  view: NodeView,
): ServicePortPlan {
  const selection = selectEndpoints(port, endpoints, view);
  const internal = internalRoutes(port, selection, view);
  const external = externalRoutes(port, selection);
  const draining = port.protocol === 'TCP' ? [] : drainingOf(endpoints, selection);
  const here = endpoints.filter(({ isLocal }) => isLocal);
  const refusedIPs = refusedIPsOf(port, view);
  return {
    id: port.id,
    service: port.service,
    name: port.name,
    protocol: port.protocol,
    frontends: frontendsOf(served(port, refusedIPs), internal, external, view),
    internal,
    external,
    pools: {
      ...(selection.cluster.length > 0 && { cluster: selection.cluster }),
      ...(selection.local.length > 0 && { local: selection.local }),
    },
    ...(draining.length > 0 && { draining }),
    ...(refusedIPs.length > 0 && { refusedIPs }),
    ...(here.length > 0 && { localEndpoints: here.map(({ ip, port: number }) => ({ ip, port: number })) }),
    preservesClientIP: port.externalPolicyLocal,
    affinitySeconds: port.affinitySeconds,
    healthCheckNodePort: port.healthCheckNodePort,
    endpointCount: endpoints.length,
  };
}

const NO_IPS: readonly Ip[] = [];

function refusedIPsOf(port: ServicePort, { reserved, allowExternalIPs }: NodeView): readonly Ip[] {
  if (reserved === undefined || reserved.length === 0) return NO_IPS;
  const claimed = [...(allowExternalIPs ? port.externalIPs : []), ...port.loadBalancerIPs];
  // The cluster's own allocation is nobody's claim.
  const refused = claimed.filter(
    (ip) => ip !== port.clusterIP && isReserved(reserved, ip, port.protocol, port.port),
  );
  return refused.length === 0 ? NO_IPS : [...new Set(refused)];
}

function served(port: ServicePort, refusedIPs: readonly Ip[]): ServicePort {
  if (refusedIPs.length === 0) return port;
  const isServed = (ip: Ip): boolean => !refusedIPs.includes(ip);
  return {
    ...port,
    externalIPs: port.externalIPs.filter(isServed),
    loadBalancerIPs: port.loadBalancerIPs.filter(isServed),
  };
}

function drainingOf(endpoints: readonly Endpoint[], { cluster, local }: Selection): readonly Endpoint[] {
  const chosen = new Set([...cluster, ...local]);
  return endpoints.filter((endpoint) => endpoint.serving && !chosen.has(endpoint));
}

/** The cluster IP: the same endpoints for everybody; sources outside the pod network are masqueraded, so that replies come back here. */
function internalRoutes(port: ServicePort, selection: Selection, view: NodeView): Routes {
  if (!selection.hasAny) return REJECT_ALL;
  const pool = port.internalPolicyLocal ? 'local' : 'cluster';
  if (selection[pool].length === 0) return DROP_ALL;
  const { plain, masqueraded } = FORWARD[pool];
  // Without a way to tell pods apart, marking everybody would hide every pod's address.
  const fromElsewhere = view.masqueradeAll || view.localDetector.kind !== 'none' ? masqueraded : plain;
  return { pod: view.masqueradeAll ? masqueraded : plain, node: fromElsewhere, outside: fromElsewhere };
}

/**
 * Node ports, load-balancer and external IPs. With the Local policy clients outside keep their address and reach
 * endpoints of this node only; pods and the node itself are as good as inside, so they get the whole cluster.
 */
function externalRoutes(port: ServicePort, selection: Selection): Routes {
  if (!selection.hasAny) return REJECT_ALL;
  if (!port.externalPolicyLocal) return selection.cluster.length > 0 ? MASQUERADE_ALL : DROP_ALL;
  const { plain, masqueraded } = FORWARD.cluster;
  return {
    pod: plain,
    node: masqueraded,
    outside: selection.local.length > 0 ? FORWARD.local.plain : DROP,
  };
}

function everyone(route: Route): Routes {
  return { pod: route, node: route, outside: route };
}

function frontendsOf(
  port: ServicePort,
  internal: Routes,
  external: Routes,
  view: NodeView,
): readonly Frontend[] {
  const allowedSources = allowedSourcesOf(port, view);
  const frontends = [frontend('clusterIP', port.clusterIP, port.port, internal)];
  // A service may name one address twice; what it was named first, it is. But naming its load balancer's address among
  // its external IPs must not open what source ranges close.
  const guarded = new Set(allowedSources ? port.loadBalancerIPs : []);
  const allowedIPs = view.allowExternalIPs ? port.externalIPs : [];
  const externalIPs = new Set(allowedIPs.filter((ip) => ip !== port.clusterIP && !guarded.has(ip)));
  for (const address of externalIPs) frontends.push(frontend('externalIP', address, port.port, external));
  const isNew = (ip: Ip): boolean => ip !== port.clusterIP && !externalIPs.has(ip);
  for (const address of new Set(port.loadBalancerIPs.filter(isNew)))
    frontends.push(frontend('loadBalancerIP', address, port.port, external, allowedSources));
  if (port.nodePort !== 0) frontends.push(frontend('nodePort', undefined, port.nodePort, external));
  return frontends.slice(); // without the room that push leaves
}

function frontend(
  kind: FrontendKind,
  address: Ip | undefined,
  port: number,
  routes: Routes,
  allowedSources?: AllowedSources,
): Frontend {
  return { kind, address, port, routes, allowedSources };
}

function allowedSourcesOf(port: ServicePort, view: NodeView): AllowedSources | undefined {
  if (port.sourceRanges.length === 0) return undefined;
  const { nodeIp } = view;
  const nodeIsAllowed =
    nodeIp !== undefined && port.sourceRanges.some((range) => cidrContains(range, nodeIp));
  return { ranges: port.sourceRanges, hosts: nodeIsAllowed ? port.loadBalancerIPs : [] };
}

/** Which endpoints of a service port this node may use, and for what. */
interface Selection {
  readonly cluster: readonly Endpoint[];
  readonly local: readonly Endpoint[];
  /** Some endpoint could serve, here or on another node. */
  readonly hasAny: boolean;
}

export type Locality = Pick<NodeView, 'nodeName' | 'zone'>;

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
  const ready = readyOf(endpoints);
  return ready.length > 0 ? nearest(ready, locality) : endpoints.filter(isDraining);
}

function readyElseTerminating(endpoints: readonly Endpoint[]): readonly Endpoint[] {
  const ready = readyOf(endpoints);
  return ready.length > 0 ? ready : endpoints.filter(isDraining);
}

/** The same list where all of them are, as mostly. */
function readyOf(endpoints: readonly Endpoint[]): readonly Endpoint[] {
  return endpoints.every((endpoint) => endpoint.ready)
    ? endpoints
    : endpoints.filter((endpoint) => endpoint.ready).slice();
}

/** No longer ready, still able to answer: better than nobody. */
function isDraining(endpoint: Endpoint): boolean {
  return !endpoint.ready && endpoint.serving && endpoint.terminating;
}

type TopologyMode = 'same-node' | 'same-zone' | 'none';

/** Hints count only if every ready endpoint has them: else the few that have them would be overloaded. */
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
