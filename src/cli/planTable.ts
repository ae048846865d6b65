/** `junction plan --output table`: who answers where, in which pods that ends, and who got nothing. */
import type { Settings } from '../config/index.ts';
import { type Family, hostPort } from '../model/ip.ts';
import type { ServicePortId } from '../model/servicePort.ts';
import { printCut } from '../plan/capacity.ts';
import type { Frontend, PoolName, Route, ServicePortPlan } from '../plan/types.ts';
import type { FamilyProxy } from '../proxy/familyProxy.ts';
import { fitsIn, printDetailedTable, printTable } from './table.ts';

export interface PlannedFamily {
  readonly family: Family;
  readonly proxy: FamilyProxy;
  /** The node that is planned for is among the Nodes. */
  readonly hasNode: boolean;
}

/** An address that a service port asked for and another one has. */
export interface LostAddress {
  readonly servicePort: ServicePortId;
  /** `192.0.2.1/TCP/80`; `*` stands for the node's addresses. */
  readonly address: string;
  readonly servedBy: ServicePortId;
}

export function printPlanTable(
  { family, proxy, hasNode }: PlannedFamily,
  settings: Settings,
  now: Date,
  columns = Number.POSITIVE_INFINITY,
): string {
  const ports = sorted(proxy);
  const layout = settings.mode === 'iptables' ? `, layout ${settings.layout}` : '';
  const node = `Node ${settings.nodeName}${hasNode ? '' : ' (there is no such Node)'}`;
  const head = `${node}, ${settings.mode} mode${layout}, ${family}, ${now.toISOString()}\n`;
  if (ports.length === 0) return `${head}No services in ${family}.\n`;
  const frontends = ports.flatMap((port) => port.frontends.map((frontend) => frontendRow(port, frontend)));
  const endpoints = ports.flatMap(endpointRows);
  const lost = lostAddresses(proxy).map(({ servicePort, address, servedBy }) => [
    servicePort,
    address,
    servedBy,
  ]);
  return [
    head,
    printFrontends(frontends, columns),
    ...(endpoints.length > 0 ? ['\n', printTable(['SERVICE PORT', 'ENDPOINT', 'FOR'], endpoints)] : []),
    ...(lost.length > 0 ? ['\n', printTable(['SERVICE PORT', 'LOSES', 'SERVED BY'], lost)] : []),
  ].join('');
}

const HEADER = [
  'SERVICE PORT',
  'FRONTEND',
  'ADDRESS',
  'FROM POD',
  'FROM NODE',
  'FROM OUTSIDE',
  'SOURCES',
  'AFFINITY',
];
/** Of these columns, the ones that stand in the row also in a narrow terminal. */
const NARROW = 3;

function printFrontends(rows: readonly (readonly string[])[], columns: number): string {
  const wide = printTable(HEADER, rows);
  if (fitsIn(wide, columns)) return wide;
  const narrow = rows.map((cells) => ({ lines: [cells.slice(0, NARROW)], details: details(cells) }));
  const header = [...HEADER.slice(0, NARROW - 1), 'ADDRESS, AND WHO ANSWERS'];
  return printDetailedTable(header, narrow, columns);
}

/** What is the same for all who dial is said once, and what is the rule not at all. */
function details([
  ,
  ,
  ,
  pod = '',
  node = '',
  outside = '',
  sources = '',
  affinity = '',
]: readonly string[]): string {
  const isOne = pod === node && node === outside;
  const routes = isOne ? [pod] : [`from pod: ${pod}`, `from node: ${node}`, `from outside: ${outside}`];
  const others = [
    ...(sources === 'all' ? [] : [`sources: ${sources}`]),
    ...(affinity === '-' ? [] : [`affinity: ${affinity}`]),
  ];
  return [...routes, ...others].join('; ');
}

export function lostAddresses(proxy: FamilyProxy): readonly LostAddress[] {
  return sorted(proxy).flatMap(({ id }) =>
    proxy.denied(id).map(({ key, owner }) => ({ servicePort: id, address: key, servedBy: owner })),
  );
}

/** For people: what is left out of objects that are too large, and addresses that no service may have. */
export function planNotes({ family, proxy }: PlannedFamily): readonly string[] {
  const services = new Set([...proxy.plan.servicePorts.values()].map(({ service }) => service));
  return [...services]
    .sort()
    .flatMap((service) =>
      proxy.cutsOf(service).map((cut) => `Service ${service} (${family}): ${printCut(cut)}`),
    );
}

function sorted(proxy: FamilyProxy): readonly ServicePortPlan[] {
  return [...proxy.plan.servicePorts.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
}

const KINDS: Readonly<Record<Frontend['kind'], string>> = {
  clusterIP: 'cluster IP',
  externalIP: 'external IP',
  loadBalancerIP: 'load balancer',
  nodePort: 'node port',
};

function frontendRow(
  port: ServicePortPlan,
  { kind, address, port: number, routes, allowedSources }: Frontend,
): readonly string[] {
  const dialled = address === undefined ? `*:${number}` : hostPort(address, number);
  return [
    port.id,
    KINDS[kind],
    dialled,
    ...[routes.pod, routes.node, routes.outside].map((route) => printRoute(port, route)),
    allowedSources === undefined ? 'all' : allowedSources.ranges.join(','),
    port.affinitySeconds === undefined ? '-' : `${port.affinitySeconds}s`,
  ];
}

function printRoute(port: ServicePortPlan, route: Route): string {
  if (route.verdict !== 'forward') return route.verdict;
  const count = port.pools[route.pool]?.length ?? 0;
  const where = route.pool === 'local' ? ' local' : '';
  return `${count}${where} endpoint${count === 1 ? '' : 's'}${route.masquerade ? ', masqueraded' : ''}`;
}

const POOLS: readonly PoolName[] = ['cluster', 'local'];

function endpointRows(port: ServicePortPlan): readonly (readonly string[])[] {
  const pools = new Map<string, PoolName[]>();
  for (const name of POOLS)
    for (const { key } of port.pools[name] ?? []) pools.set(key, [...(pools.get(key) ?? []), name]);
  return [...pools].map(([endpoint, names]) => [port.id, endpoint, names.join(', ')]);
}
