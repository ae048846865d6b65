/** `junction plan --output table`: which endpoints serve an address, and which service ports lost theirs. */
import type { Settings } from '../config/settings.ts';
import { type Family, hostPort } from '../model/ip.ts';
import type { ServicePortId } from '../model/serviceTracker.ts';
import { printCut } from '../plan/capacity.ts';
import type { Frontend, PoolName, Route, ServicePortPlan } from '../plan/types.ts';
import type { Proxier } from '../proxy/proxier.ts';
import { fitsIn, printDetailedTable, printColumns } from './table.ts';
import type { IpvsText } from '../modes/ipvs/print.ts';
import { DEVICE } from '../modes/ipvs/rules/client.ts';
import { TABLES } from '../modes/iptables/rules/rule.ts';
import type { TableRule, WholeRules } from '../modes/iptables/rules/whole.ts';
import { printableLine } from '../text/printable.ts';

export interface PlannedFamily {
  readonly family: Family;
  readonly proxy: Proxier;
  /** The node that is planned for is among the Nodes. */
  readonly hasNode: boolean;
}

/** An address that a service port asked for and another one has. */
interface LostAddress {
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
    ...(endpoints.length > 0 ? ['\n', printColumns(['SERVICE PORT', 'ENDPOINT', 'FOR'], endpoints)] : []),
    ...(lost.length > 0 ? ['\n', printColumns(['SERVICE PORT', 'LOSES', 'SERVED BY'], lost)] : []),
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
  const wide = printColumns(HEADER, rows);
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

export function lostAddresses(proxy: Proxier): readonly LostAddress[] {
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

function sorted(proxy: Proxier): readonly ServicePortPlan[] {
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

/**
 * `junction plan --output script`: a POSIX shell script that applies the plan beside other programs' rules. Run again,
 * it leaves the same. Why not the text alone: docs/decisions/0029-what-plan-prints-can-be-applied-again.md.
 */

/** Nothing that is printed begins a line with it. */
const END = 'JUNCTION';

/** From the commands of each family. */
export function printScript(
  { nodeName, mode }: Settings,
  families: readonly Family[],
  commands: readonly string[],
): string {
  const needs = NEEDS[mode];
  return `#!/bin/sh
# ${printableLine(`Node ${nodeName}, ${mode} mode, ${families.join(' and ')}`)}. As root: junction plan ... --output script | sh
# Run again, it leaves the same. Rules of other programs stay. What is there of Services that are gone: junction cleanup.
set -eu
${needs}
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

export function nftCommands(text: string): string {
  return withInput('nft -f -', text);
}

export function ipvsCommands(family: Family, rules: WholeRules, { ipset, ipvsadm, ip }: IpvsText): string {
  const [link = '', ...addresses] = ip.split(/(?<=\n)/);
  return [
    withInput('ipset restore -exist', ipset),
    `{\nipvsadm --save --numeric\necho\n${withInput('cat', ipvsadm)}} | servers\n`,
    iptablesCommands(family, rules),
    `ip link show dev ${DEVICE} > /dev/null 2>&1 || ip ${link}`,
    withInput('ip -batch -', addresses.join('')),
  ].join('');
}

export function iptablesCommands(family: Family, rules: WholeRules): string {
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
