/** `junction plan`: what would be written for given manifests. Needs no root and touches nothing. */
import type { CompileOptions } from '../backends/iptables/fragment.ts';
import { LAYOUTS } from '../backends/iptables/layouts/index.ts';
import { wholeRestore } from '../backends/iptables/whole.ts';
import { localIps } from '../kernel/interfaces.ts';
import { type Family, hostPort } from '../model/ip.ts';
import { objectKey } from '../model/objects.ts';
import { answersNodePorts } from '../plan/decide.ts';
import type { Frontend, Plan, Route, ServicePortPlan } from '../plan/types.ts';
import { capacityOf } from '../plan/capacity.ts';
import { printableLine } from '../printable.ts';
import { FamilyProxy } from '../proxy/familyProxy.ts';
import { loadManifests, type Manifests } from '../sources/manifests/load.ts';
import { printSourceProblem } from '../sources/source.ts';
import type { Output } from './output.ts';
import type { Settings } from '../config/index.ts';
import { ipvsPlanText, printIpvsPlan } from './planIpvs.ts';
import { nftPlanText, printNftPlan } from './planNft.ts';
import { printTable } from './table.ts';

export interface PlanOptions {
  readonly families: readonly Family[];
  readonly output: string;
}

/**
 * Answers the exit code: 1 if something in the manifests could not be used. Rules of a part would take down the rest
 * where somebody pipes them into iptables-restore, so then there are none; nor is there anything of files that could not
 * be read.
 */
export async function planCommand(settings: Settings, output: Output, options: PlanOptions): Promise<number> {
  const manifests = await loadManifests(settings.manifests);
  for (const problem of manifests.problems) output.err(`${printSourceProblem(problem)}\n`);
  for (const { where, object, reason } of manifests.ignored) {
    output.err(`${printableLine(`${where}: note: ${object} is left alone: ${reason}`)}\n`);
  }
  const errors = manifests.problems.filter(({ severity }) => severity === 'error');
  const isUnread = errors.some(({ object }) => object === undefined);
  if (isUnread || (errors.length > 0 && options.output === 'text')) {
    output.err(
      `junction: ${errors.length === 1 ? 'an error' : `${errors.length} errors`} above, so nothing is planned\n`,
    );
    return 1;
  }
  const plans = options.families.map((family) => makePlan(family, settings, manifests));
  if (options.output === 'json') output.out(printJson(plans, settings, manifests));
  else if (options.output === 'table') output.out(plans.map(printPlanTable).join('\n'));
  else output.out(plans.map((plan) => printText(plan, settings)).join('\n'));
  return errors.length > 0 ? 1 : 0;
}

export function makePlan(family: Family, settings: Settings, manifests: Manifests): Plan {
  const capacity = capacityOf(settings.mode, family);
  const proxy = new FamilyProxy({ family, settings, backend: NO_BACKEND, capacity });
  for (const service of manifests.services)
    proxy.onService(objectKey(service.namespace, service.name), service);
  for (const slice of manifests.slices) proxy.onEndpointSlice(slice.namespace, slice.name, slice);
  proxy.onNode(manifests.nodes.find((node) => node.name === settings.nodeName));
  proxy.replan();
  return proxy.plan;
}

const NO_BACKEND = {
  sync: () => Promise.reject(new Error('a plan is not written anywhere')),
  requestFull: (): void => {},
};

function compileOptions(plan: Plan, settings: Settings): CompileOptions {
  const { nodePorts } = plan.view;
  const local = localIps(plan.family);
  return {
    family: plan.family,
    view: plan.view,
    nodePortIps: nodePorts.ranges === 'all' ? 'all' : local.filter((ip) => answersNodePorts(nodePorts, ip)),
    masqueradeMark: (1 << settings.masqueradeBit) >>> 0,
    randomFully: true,
    dropInvalid: true,
    nfacct: { invalidDropped: false, localhostNodePorts: false },
    endpointComments: plan.endpointCount <= 1000,
  };
}

function printText(plan: Plan, settings: Settings): string {
  switch (settings.mode) {
    case 'iptables':
      return printRestore(plan, settings);
    case 'ipvs':
      return printIpvsPlan(plan, settings);
    case 'nftables':
      return printNftPlan(plan, settings);
  }
}

function printRestore(plan: Plan, settings: Settings): string {
  const program = plan.family === 'IPv4' ? 'iptables-restore' : 'ip6tables-restore';
  const layout = LAYOUTS[settings.layout];
  const head = `# ${plan.family}, layout ${layout.name}, for: ${program} --noflush --counters\n`;
  return head + wholeRestore(layout, plan, compileOptions(plan, settings));
}

function printPlanTable(plan: Plan): string {
  const rows = [...plan.servicePorts.values()]
    .sort((a, b) => (a.id < b.id ? -1 : 1))
    .flatMap((port) => port.frontends.map((frontend) => frontendRow(port, frontend)));
  if (rows.length === 0) return `No services in ${plan.family}.\n`;
  return printTable(['SERVICE PORT', 'FRONTEND', 'ADDRESS', 'FROM POD', 'FROM NODE', 'FROM OUTSIDE'], rows);
}

const KINDS: Readonly<Record<Frontend['kind'], string>> = {
  clusterIP: 'cluster IP',
  externalIP: 'external IP',
  loadBalancerIP: 'load balancer',
  nodePort: 'node port',
};

function frontendRow(
  port: ServicePortPlan,
  { kind, address, port: number, routes }: Frontend,
): readonly string[] {
  const dialled = address === undefined ? `*:${number}` : hostPort(address, number);
  return [
    port.id,
    KINDS[kind],
    dialled,
    ...[routes.pod, routes.node, routes.outside].map((route) => printRoute(port, route)),
  ];
}

function printRoute(port: ServicePortPlan, route: Route): string {
  if (route.verdict !== 'forward') return route.verdict;
  const count = port.pools[route.pool]?.length ?? 0;
  const where = route.pool === 'local' ? ' local' : '';
  return `${count}${where} endpoint${count === 1 ? '' : 's'}${route.masquerade ? ', masqueraded' : ''}`;
}

/** What would be written, by the program that takes it. */
function kernelText(plan: Plan, settings: Settings): object {
  switch (settings.mode) {
    case 'iptables':
      return { restore: wholeRestore(LAYOUTS[settings.layout], plan, compileOptions(plan, settings)) };
    case 'ipvs':
      return ipvsPlanText(plan, settings);
    case 'nftables':
      return { nft: nftPlanText(plan, settings) };
  }
}

function printJson(plans: readonly Plan[], settings: Settings, manifests: Manifests): string {
  const families = plans.map((plan) => ({
    family: plan.family,
    mode: settings.mode,
    ...(settings.mode === 'iptables' && { layout: settings.layout }),
    node: plan.view,
    servicePorts: [...plan.servicePorts.values()],
    ...kernelText(plan, settings),
  }));
  return `${JSON.stringify({ families, problems: manifests.problems, ignored: manifests.ignored }, null, 2)}\n`;
}
