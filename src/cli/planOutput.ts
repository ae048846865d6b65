/** What `junction plan` prints. */
import type { Settings } from '../config/settings.ts';
import { type Cidr, type Family, hostPort } from '../model/ip.ts';
import { BOTH_IN_ONE, printRestore, rulesOf } from '../modes/iptables/print.ts';
import { ipvsPlanText, printIpvsPlan } from '../modes/ipvs/print.ts';
import { nftPlanText, printNftPlan } from '../modes/nftables/print.ts';
import type { PrintOptions } from './output.ts';
import { nodeOf, type PlanInput } from './planInput.ts';
import { printCut } from '../plan/capacity.ts';
import type { Frontend, Plan, PoolName, Route, ServicePortPlan } from '../plan/types.ts';
import type { Planner } from '../plan/planner.ts';
import { fitsIn, printDetailedTable, printColumns } from './table.ts';

type Print<T> = (plan: Plan, settings: Settings, serviceCidrs: readonly Cidr[]) => T;

/** A mode's rules: as text for people and programs, and as fields of the JSON. */
interface PlanPrinter {
  readonly text: Print<string>;
  readonly fields: Print<object>;
}

const PRINTERS: Readonly<Record<Settings['mode'], PlanPrinter>> = {
  iptables: { text: printRestore, fields: rulesOf },
  ipvs: { text: printIpvsPlan, fields: ipvsPlanText },
  nftables: { text: printNftPlan, fields: (...planned) => ({ nft: nftPlanText(...planned) }) },
};

export function printPlans(
  plans: readonly Planner[],
  settings: Settings,
  { nodes, serviceCidrs, problems, ignored }: PlanInput,
  { output, columns }: PrintOptions,
): string {
  const { mode, nodeName } = settings;
  const printer = PRINTERS[mode];
  if (output === 'json') {
    const families = plans.map((plan) => ({
      family: plan.family,
      mode,
      ...(mode === 'iptables' && { layout: settings.layout }),
      node: plan.view,
      servicePorts: [...plan.servicePorts.values()],
      lostAddresses: lostAddresses(plan),
      ...printer.fields(plan, settings, serviceCidrs),
    }));
    return `${JSON.stringify({ families, problems, ignored }, null, 2)}\n`;
  }
  if (output === 'table') {
    const node = `Node ${nodeName}${nodeOf(nodes, nodeName) ? '' : ' (there is no such Node)'}`;
    const layout = mode === 'iptables' ? `, layout ${settings.layout}` : '';
    const time = new Date().toISOString();
    const head = (family: Family): string => `${node}, ${mode} mode${layout}, ${family}, ${time}\n`;
    return plans.map((plan) => head(plan.family) + printPlanTable(plan, columns)).join('\n');
  }
  const isForTwo = plans.length > 1 && mode === 'iptables';
  const texts = plans.map((plan) => printer.text(plan, settings, serviceCidrs));
  return (isForTwo ? BOTH_IN_ONE : '') + texts.join('\n');
}

function printPlanTable(plan: Planner, columns = Number.POSITIVE_INFINITY): string {
  const ports = sorted(plan);
  if (ports.length === 0) return `No services in ${plan.family}.\n`;
  const frontends = ports.flatMap((port) => port.frontends.map((frontend) => frontendRow(port, frontend)));
  const endpoints = ports.flatMap(endpointRows);
  const lost = lostAddresses(plan).map((each) => Object.values(each));
  return [
    printFrontends(frontends, columns),
    ...(endpoints.length > 0 ? ['\n', printColumns(['SERVICE PORT', 'ENDPOINT', 'FOR'], endpoints)] : []),
    ...(lost.length > 0 ? ['\n', printColumns(['SERVICE PORT', 'LOSES', 'SERVED BY'], lost)] : []),
  ].join('');
}

/** The columns that stand in the row also in a narrow terminal, and the others. */
const NARROW = ['SERVICE PORT', 'FRONTEND', 'ADDRESS'];
const DETAILS = ['FROM POD', 'FROM NODE', 'FROM OUTSIDE', 'SOURCES', 'AFFINITY'];

function printFrontends(rows: readonly (readonly string[])[], columns: number): string {
  const wide = printColumns([...NARROW, ...DETAILS], rows);
  if (fitsIn(wide, columns)) return wide;
  const narrow = rows.map((cells) => ({ lines: [cells.slice(0, NARROW.length)], details: details(cells) }));
  const header = [...NARROW.slice(0, -1), 'ADDRESS, AND WHO ANSWERS'];
  return printDetailedTable(header, narrow, columns);
}

/** What is the same for all who dial is said once, and what is the rule not at all. */
function details(cells: readonly string[]): string {
  const [pod = '', node = '', outside = '', sources = '', affinity = ''] = cells.slice(NARROW.length);
  const isOne = pod === node && node === outside;
  const routes = isOne ? [pod] : [`from pod: ${pod}`, `from node: ${node}`, `from outside: ${outside}`];
  const others = [
    ...(sources === 'all' ? [] : [`sources: ${sources}`]),
    ...(affinity === '-' ? [] : [`affinity: ${affinity}`]),
  ];
  return [...routes, ...others].join('; ');
}

/** Addresses that a service port asked for and another one has: `192.0.2.1/TCP/80`; `*` stands for the node's. */
function lostAddresses(plan: Planner) {
  return sorted(plan).flatMap(({ id }) =>
    plan.denied(id).map(({ key, owner }) => ({ servicePort: id, address: key, servedBy: owner })),
  );
}

/** For people: what is left out of objects that are too large, and addresses that no service may have. */
export function planNotes(plan: Planner): readonly string[] {
  const services = new Set([...plan.servicePorts.values()].map(({ service }) => service));
  return [...services]
    .sort()
    .flatMap((service) =>
      plan.cutsOf(service).map((cut) => `Service ${service} (${plan.family}): ${printCut(cut)}`),
    );
}

function sorted(plan: Planner): readonly ServicePortPlan[] {
  return [...plan.servicePorts.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
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
