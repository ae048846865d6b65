/** Kernel settings without which packets of services are not forwarded, or are dropped. */
import type { ValidConfig } from '../config/effective.ts';
import type { Family, Ip } from '../model/ip.ts';
import { wantedConntrackSettings } from '../system/conntrackSysctls.ts';
import type { GroupFindings } from './group.ts';
import type { DoctorLink, DoctorMachine } from './machine.ts';

export interface SysctlContext {
  readonly families: readonly Family[];
  /** No service has an address of these. A cluster with one family needs no settings of the other. */
  readonly unused?: readonly Family[];
  readonly conntrack: ValidConfig['conntrack'];
  /** Node ports are to answer on 127.0.0.1. */
  readonly localhostNodePorts: boolean;
  /** Clients outside come from everywhere: an address that stands for them. */
  readonly outsider?: Ip;
}

const FORWARDING: Readonly<Record<Family, string>> = {
  IPv4: 'net/ipv4/ip_forward',
  IPv6: 'net/ipv6/conf/all/forwarding',
};
const BRIDGE_CALLS: Readonly<Record<Family, string>> = {
  IPv4: 'net/bridge/bridge-nf-call-iptables',
  IPv6: 'net/bridge/bridge-nf-call-ip6tables',
};
const ROUTE_LOCALNET = 'net/ipv4/conf/all/route_localnet';

export async function checkSysctls(
  group: GroupFindings,
  machine: DoctorMachine,
  context: SysctlContext,
): Promise<void> {
  const links = await machine.links();
  for (const family of context.families) {
    if (context.unused?.includes(family)) {
      group.fine(`no service has an ${family} address`);
      continue;
    }
    checkForwarding(group, machine, family);
    checkBridge(group, machine, family, links);
  }
  if (context.localhostNodePorts && context.families.includes('IPv4')) checkLocalnet(group, machine);
  checkConntrackLimits(group, machine, context);
  if (context.families.includes('IPv4')) await checkReversePath(group, machine, links, context.outsider);
}

function checkForwarding(group: GroupFindings, machine: DoctorMachine, family: Family): void {
  const name = FORWARDING[family];
  const value = machine.sysctl(name);
  if (value === undefined) group.notEvaluated(dotted(name), 'it cannot be read');
  else if (value !== '0') group.fine(`${dotted(name)} is ${value}`);
  else
    group.found({
      code: 'forwarding-off',
      severity: 'error',
      text: `this node does not forward ${family} packets`,
      evidence: `${dotted(name)} is 0`,
      consequence: `no ${family} service reaches a pod from outside the node: packets are translated, and dropped`,
      cure: setting(name, 1),
    });
}

/** Frames between two pods of one bridge skip iptables unless br_netfilter hands them over. */
function checkBridge(
  group: GroupFindings,
  machine: DoctorMachine,
  family: Family,
  links: readonly DoctorLink[],
): void {
  const name = BRIDGE_CALLS[family];
  const bridges = links.filter(({ kind, isUp }) => kind === 'bridge' && isUp).map((link) => link.name);
  const value = machine.sysctl(name);
  if (value !== '0') {
    if (value !== undefined) group.fine(`${dotted(name)} is ${value}`);
    else if (bridges.length > 0)
      group.notEvaluated(dotted(name), `br_netfilter is not loaded; bridges: ${bridges.join(', ')}`);
    return;
  }
  group.found({
    code: 'bridge-bypasses-rules',
    severity: bridges.length > 0 ? 'warning' : 'info',
    text: 'frames between pods of one bridge do not pass the rules',
    evidence: `${dotted(name)} is 0; bridges: ${bridges.join(', ') || 'none'}`,
    consequence: 'pods on one bridge that talk through a service get answers from the wrong address',
    cure: setting(name, 1),
  });
}

function checkLocalnet(group: GroupFindings, machine: DoctorMachine): void {
  const value = machine.sysctl(ROUTE_LOCALNET);
  if (value === '1') group.fine(`${dotted(ROUTE_LOCALNET)} is 1`);
  else
    group.found({
      code: 'localnet-not-routed',
      severity: 'warning',
      text: 'node ports do not answer on 127.0.0.1',
      evidence: `${dotted(ROUTE_LOCALNET)} is ${value ?? 'unreadable'}`,
      consequence: 'packets to 127.0.0.1 that are sent on to a pod are dropped as martians',
      cure: `${setting(ROUTE_LOCALNET, 1)}; or --iptables-localhost-nodeports=false`,
    });
}

/** Those under /proc/sys that the configuration asks for. */
function checkConntrackLimits(group: GroupFindings, machine: DoctorMachine, context: SysctlContext): void {
  for (const { name, wanted, consequence } of wantedConntrackSettings(context.conntrack, machine.cpus)) {
    const value = name.startsWith('net/') ? machine.sysctl(name) : undefined;
    if (value === undefined) continue;
    // Somebody who has set more than is asked for has a reason.
    const isEnough = name.endsWith('_max') ? Number(value) >= wanted : Number(value) === wanted;
    if (isEnough) group.fine(`${dotted(name)} is ${value}`);
    else
      group.found({
        code: 'conntrack-setting',
        severity: 'info',
        text: `${dotted(name)} is not what the configuration asks for`,
        evidence: `it is ${value}; configured: ${wanted}`,
        consequence,
        cure: setting(name, wanted),
      });
  }
}

/**
 * With 1, the kernel drops a packet whose answer would leave by another interface. The kernel takes the larger of the
 * setting of `all` and that of the interface; 2 asks only for any route.
 */
async function checkReversePath(
  group: GroupFindings,
  machine: DoctorMachine,
  links: readonly DoctorLink[],
  outsider: Ip = '198.51.100.1' as Ip,
): Promise<void> {
  const all = Number(machine.sysctl('net/ipv4/conf/all/rp_filter') ?? 0);
  const filterOf = ({ name }: DoctorLink): number =>
    Math.max(all, Number(machine.sysctl(`net/ipv4/conf/${name}/rp_filter`) ?? 0));
  const strict = links.filter((link) => link.isUp && link.name !== 'lo' && filterOf(link) === 1);
  const dropped = reversePathDrops(machine.procFile('net/netstat') ?? '');
  if (strict.length === 0) {
    group.fine('rp_filter is strict on no interface');
    return;
  }
  const names = strict.map(({ name }) => name).join(', ');
  const asymmetric = await asymmetricLinks(machine, strict, outsider);
  if (asymmetric.length === 0 && dropped === 0) {
    group.fine(`rp_filter is strict on ${names}, and dropped nothing`);
    return;
  }
  const blamed = asymmetric.length > 0 ? asymmetric : strict;
  group.found({
    code: 'rp-filter-drops',
    severity: dropped > 0 && asymmetric.length > 0 ? 'error' : 'warning',
    text:
      asymmetric.length > 0
        ? `rp_filter drops packets of outside clients that arrive at ${listed(asymmetric)}`
        : `rp_filter has dropped packets`,
    evidence: [
      `rp_filter is 1 on ${names}`,
      ...(asymmetric.length > 0
        ? [`the route to ${outsider} leaves by another interface than ${listed(asymmetric)}`]
        : []),
      `${dropped} packets dropped so far (IPReversePathFilter in /proc/net/netstat)`,
    ].join('; '),
    consequence:
      'clients whose answers leave by another interface than their packets came in by get no answer from node ports, external and load-balancer IPs, and pods behind an asymmetric route none from services',
    cure: blamed.map(({ name }) => `sysctl -w net.ipv4.conf.${name}.rp_filter=2`).join('; '),
  });
}

/** Interfaces at which the kernel would drop a client from outside. */
async function asymmetricLinks(
  machine: DoctorMachine,
  strict: readonly DoctorLink[],
  source: Ip,
): Promise<readonly DoctorLink[]> {
  const found: DoctorLink[] = [];
  for (const link of strict) {
    const own = link.addresses.find((ip) => !ip.includes(':'));
    // Clients from outside dial an address of the interface; one without an address has pods behind it.
    if (own === undefined || link.kind === 'bridge') continue;
    const look = await machine.route(own, { source, inLink: link.index });
    // EXDEV says so before Linux 6.13, EINVAL since: then the way back decides whether that is the reason.
    if (look.state !== 'refused' || (look.errno !== 'EXDEV' && look.errno !== 'EINVAL')) continue;
    const back = await machine.route(source);
    if (back.state === 'refused' || back.outLink !== link.index) found.push(link);
  }
  return found;
}

/** The file has a line of names, then a line of numbers, for each protocol. */
function reversePathDrops(netstat: string): number {
  const [names = [], values = []] = netstat
    .split('\n')
    .filter((line) => line.startsWith('TcpExt:'))
    .map((line) => line.split(' '));
  const at = names.indexOf('IPReversePathFilter');
  return at < 0 ? 0 : Number(values[at] ?? 0);
}

function listed(links: readonly DoctorLink[]): string {
  return links.map(({ name }) => name).join(', ');
}

function dotted(name: string): string {
  return name.replaceAll('/', '.');
}

function setting(name: string, value: number): string {
  return `sysctl -w ${dotted(name)}=${value}`;
}
