/** What a change did to the plan, in words: `shop/web:http/TCP: endpoint 10.1.0.7:80 removed from cluster`. */
import { deepEqual } from '../model/equal.ts';
import { hostPort } from '../model/ip.ts';
import type { Frontend, FrontendKind, PlanChange, PoolName, Route, ServicePortPlan } from './types.ts';

/** A service port may have thousands of endpoints, and all of them may change at once. */
const MOST_DETAILS = 6;
const POOLS: readonly PoolName[] = ['cluster', 'local'];

const KINDS: Readonly<Record<FrontendKind, string>> = {
  clusterIP: 'cluster IP',
  externalIP: 'external IP',
  loadBalancerIP: 'load-balancer IP',
  nodePort: 'node port',
};

/** Empty where nothing of it can be dialled before or after. */
export function describePlanChange({ id, previous, current }: PlanChange): readonly string[] {
  if (!previous && !current) return [];
  if (!previous) return [`${id}: added with ${countsOf(current)}`];
  if (!current) return [`${id}: removed`];
  const details = [
    ...frontendChanges(previous, current),
    ...routeChanges(previous, current),
    ...POOLS.flatMap((pool) => [...poolChanges(pool, previous, current)]),
    ...otherChanges(previous, current),
  ];
  const shown = details.slice(0, MOST_DETAILS);
  const more = details.length - shown.length;
  return [...shown, ...(more > 0 ? [`and ${more} more`] : [])].map((detail) => `${id}: ${detail}`);
}

function countsOf(plan: ServicePortPlan | undefined): string {
  const { frontends = [], pools = {} } = plan ?? {};
  const endpoints = Math.max(pools.cluster?.length ?? 0, pools.local?.length ?? 0);
  return `${counted(frontends.length, 'frontend')} and ${counted(endpoints, 'endpoint')}`;
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

function* frontendChanges(previous: ServicePortPlan, current: ServicePortPlan): Iterable<string> {
  const before = new Map(previous.frontends.map((frontend) => [printFrontend(frontend), frontend]));
  for (const frontend of current.frontends) {
    const name = printFrontend(frontend);
    const old = before.get(name);
    before.delete(name);
    if (!old) yield `${name} added`;
    else if (!deepEqual(old.allowedSources, frontend.allowedSources))
      yield `${name}: allowed sources changed`;
  }
  for (const name of before.keys()) yield `${name} removed`;
}

/** `load-balancer IP 203.0.113.10:80`, `node port 30080` */
function printFrontend({ kind, address, port }: Frontend): string {
  return `${KINDS[kind]} ${address === undefined ? port : hostPort(address, port)}`;
}

function* routeChanges(previous: ServicePortPlan, current: ServicePortPlan): Iterable<string> {
  const isExternal = [...previous.frontends, ...current.frontends].some(({ kind }) => kind !== 'clusterIP');
  const parts = [
    { name: 'traffic to the cluster IP', before: previous.internal, after: current.internal },
    ...(isExternal ? [{ name: 'external traffic', before: previous.external, after: current.external }] : []),
  ];
  for (const { name, before, after } of parts) {
    const changed = (['pod', 'node', 'outside'] as const).filter(
      (source) => printRoute(before[source]) !== printRoute(after[source]),
    );
    const [first] = changed;
    if (first === undefined) continue;
    const who = changed.length === 3 ? '' : ` from ${changed.join(' and ')}`;
    yield `${name}${who}: ${printRoute(before[first])} → ${printRoute(after[first])}`;
  }
}

function printRoute(route: Route): string {
  if (route.verdict !== 'forward') return route.verdict;
  return `forward to ${route.pool}${route.masquerade ? ', masqueraded' : ''}`;
}

function* poolChanges(
  pool: PoolName,
  { pools: previous }: ServicePortPlan,
  { pools: current }: ServicePortPlan,
): Iterable<string> {
  const before = new Set(previous[pool]?.map(({ key }) => key));
  for (const { key } of current[pool] ?? []) {
    if (!before.delete(key)) yield `endpoint ${key} added to ${pool}`;
  }
  for (const key of before) yield `endpoint ${key} removed from ${pool}`;
}

function* otherChanges(previous: ServicePortPlan, current: ServicePortPlan): Iterable<string> {
  const { affinitySeconds } = current;
  if (previous.affinitySeconds !== affinitySeconds)
    yield affinitySeconds === undefined ? 'no affinity' : `affinity for ${affinitySeconds} s`;
  if (previous.preservesClientIP !== current.preservesClientIP)
    yield current.preservesClientIP ? 'client addresses kept' : 'client addresses no longer kept';
  if (previous.healthCheckNodePort !== current.healthCheckNodePort)
    yield `health-check node port ${current.healthCheckNodePort}`;
}
