/** What `junction plan` prints. */
import type { Settings } from '../config/settings.ts';
import { type Cidr, type Family, hostPort } from '../model/ip.ts';
import { BOTH_IN_ONE, printRestore, rulesOf } from '../modes/iptables/print.ts';
import { type IpvsText, ipvsPlanText, printIpvsPlan } from '../modes/ipvs/print.ts';
import { nftPlanText, printNftPlan } from '../modes/nftables/print.ts';
import type { PrintOptions } from './output.ts';
import { nodeOf, type PlanInput } from './planInput.ts';
import { printCut } from '../plan/capacity.ts';
import type { Frontend, Plan, PoolName, Route, ServicePortPlan } from '../plan/types.ts';
import type { Planner } from '../plan/planner.ts';
import { fitsIn, printDetailedTable, printColumns } from './table.ts';
import { DEVICE } from '../modes/ipvs/rules/client.ts';
import { TABLES } from '../modes/iptables/rules/rule.ts';
import type { TableRule, WholeRules } from '../modes/iptables/rules/whole.ts';
import { printableLine } from '../text/printable.ts';

type Print<T> = (plan: Plan, settings: Settings, serviceCidrs: readonly Cidr[]) => T;

/** A mode's rules: as text for people and programs, as commands of a script, and as fields of the JSON. */
interface PlanPrinter {
  readonly text: Print<string>;
  readonly commands: Print<string>;
  readonly fields: Print<object>;
}

const PRINTERS: Readonly<Record<Settings['mode'], PlanPrinter>> = {
  iptables: {
    text: printRestore,
    commands: (plan, settings) => iptablesCommands(plan.family, rulesOf(plan, settings)),
    fields: rulesOf,
  },
  ipvs: {
    text: printIpvsPlan,
    commands: (plan, settings) => ipvsCommands(plan.family, ipvsPlanText(plan, settings)),
    fields: ipvsPlanText,
  },
  nftables: {
    text: printNftPlan,
    commands: (...planned) => withInput('nft -f -', nftPlanText(...planned)),
    fields: (...planned) => ({ nft: nftPlanText(...planned) }),
  },
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
  if (output === 'script') {
    const families = plans.map(({ family }) => family);
    const commands = plans.map((plan) => printer.commands(plan, settings, serviceCidrs));
    return printScript(settings, families, commands);
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

/**
 * `junction plan --output script`: a POSIX shell script that applies the plan beside other programs' rules. Run again,
 * it leaves the same. Why not the text alone: docs/decisions/0029-what-plan-prints-can-be-applied-again.md.
 */

/** Nothing that is printed begins a line with it. */
const END = 'JUNCTION';

/** From the commands of each family. */
function printScript(
  { nodeName, mode }: Settings,
  families: readonly Family[],
  commands: readonly string[],
): string {
  return `#!/bin/sh
# ${printableLine(`Node ${nodeName}, ${mode} mode, ${families.join(' and ')}`)}. As root: junction plan ... --output script | sh
# Run again, it leaves the same. Rules of other programs stay. What is there of Services that are gone: junction cleanup.
set -eu
${NEEDS[mode]}
apply() {
${commands.join('\n')}}

# Last, so that a script that is cut off does nothing.
apply
`;
}

/** The jumps are those of the layouts, so what eval reads is written in this program. */
const IPTABLES = `: "\${IPTABLES:=iptables}" "\${IP6TABLES:=ip6tables}"

# PROGRAM TABLE: jumps at the head of the kernel's chains. Their order counts, so if one is missing, all are inserted again.
jumps() {
  rules=$(cat)
  missing=
  while read -r rule; do eval "$1 -w -t $2 -C $rule" 2> /dev/null || missing=yes; done <<RULES
$rules
RULES
  [ "$missing" ] || return 0
  while read -r rule; do
    while eval "$1 -w -t $2 -D $rule" 2> /dev/null; do :; done
  done <<RULES
$rules
RULES
  { echo "*$2"; echo "$rules" | sed 's/^/-I /'; echo COMMIT; } | "$1-restore" -w 5 --noflush
}
`;
/**
 * `ipvsadm --restore` has no word for "unless it is there": an added server that exists is an error, and so is one
 * that is edited and does not exist. So what is there decides which it is.
 */
const SERVERS = `
# Reads what is there, an empty line, and what is planned.
servers() {
  awk '
    /^$/ { planned = 1; next }
    { id = $2 " " $3; if ($1 == "-a") id = id " -r " $5 }
    !planned { there[id] = $1; next }
    { kept[id] = 1; print (id in there ? ($1 == "-A" ? "-E" : "-e") : $1) substr($0, 3) }
    END {
      for (id in there) {
        split(id, word, " ")
        if (there[id] == "-a" && !(id in kept) && ((word[1] " " word[2]) in kept)) print "-d " id
      }
    }' | ipvsadm --restore
}
`;

const NEEDS: Readonly<Record<Settings['mode'], string>> = {
  iptables: IPTABLES,
  ipvs: IPTABLES + SERVERS,
  nftables: '',
};

function ipvsCommands(family: Family, text: WholeRules & IpvsText): string {
  const { ipset, ipvsadm, ip } = text;
  const [link = '', ...addresses] = ip.split(/(?<=\n)/);
  return [
    withInput('ipset restore -exist', ipset),
    `{\nipvsadm --save --numeric\necho\n${withInput('cat', ipvsadm)}} | servers\n`,
    iptablesCommands(family, text),
    `ip link show dev ${DEVICE} > /dev/null 2>&1 || ip ${link}`,
    withInput('ip -batch -', addresses.join('')),
  ].join('');
}

function iptablesCommands(family: Family, rules: WholeRules): string {
  const program = family === 'IPv4' ? '$IPTABLES' : '$IP6TABLES';
  const on = ({ table, chain }: Omit<TableRule, 'rule'>, operation: string, rule = ''): string =>
    `"${program}" -w -t ${table} ${operation} ${chain}${rule === '' ? '' : ` ${rule}`}`;
  return [
    ...rules.sharedChains.map((ref) => `${on(ref, '-N')} 2> /dev/null || :\n`),
    ...rules.sharedRules.map(
      (each) => `${on(each, '-C', each.rule)} 2> /dev/null ||\n  ${on(each, '-A', each.rule)}\n`,
    ),
    withInput(`"${program}-restore" -w 5 --noflush`, rules.restore),
    ...TABLES.map((table) => {
      const jumps = rules.jumps.filter((jump) => jump.table === table);
      if (jumps.length === 0) return '';
      const rulesText = jumps.map(({ chain, rule }) => `${chain} ${rule}\n`).join('');
      return withInput(`jumps "${program}" ${table}`, rulesText);
    }),
  ].join('');
}

/** Quoted, so the shell takes the text as it is. */
function withInput(command: string, text: string): string {
  return `${command} <<'${END}'\n${text}${END}\n`;
}
