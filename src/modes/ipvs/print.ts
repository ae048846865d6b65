/**
 * What `junction plan` prints of the IPVS mode: input for four programs, for people to read and for a kernel that has
 * nothing yet. The order is that in which it may be written: sets, virtual servers, rules, and then the addresses that
 * bring the packets.
 */
import type { Settings } from '../../config/settings.ts';
import { type Family, hostCidr, hostPort } from '../../model/ip.ts';
import type { Plan } from '../../plan/types.ts';
import { printJumps, restoreCommand } from '../iptables/print.ts';
import { type WholeRules, wholeRules } from '../iptables/rules/whole.ts';
import { nodeIpsOf } from '../../system/interfaces.ts';
import type { Protocol } from '../../model/objects.ts';
import { DEVICE, type ServerAttributes } from './rules/client.ts';
import {
  compileVirtualServers,
  MH_PORT,
  type ServerKey,
  type VirtualServerOptions,
  virtualServerOptions,
} from './rules/compile.ts';
import { DesiredState } from './rules/desiredState.ts';
import { ipvsLayout, ruleOptions } from './rules/rules.ts';
import { capacityFor, SET_IDS, type SetId, setName, IPSETS } from './rules/sets.ts';

interface IpvsText {
  /** For `ipset restore -exist`. Sets are emptied first, so that a second time leaves the same. */
  readonly ipset: string;
  /** For `ipvsadm --restore`, which takes no comments, and goes on after what is there already. */
  readonly ipvsadm: string;
  /** For `ip -force -batch -`: the device may be there, and there is no word for that. */
  readonly ip: string;
}

/** The rules are for when the sets are there. */
export function ipvsPlanText(plan: Plan, settings: Settings): IpvsText & WholeRules {
  const { family, view } = plan;
  const desired = desiredStateOf(plan, virtualServerOptions(plan, settings.scheduler, nodeIpsOf(family)));
  const rules = wholeRules(ipvsLayout, plan, {
    ...ruleOptions(settings.masqueradeBit, true),
    family,
    view,
    endpointComments: false,
  });
  return { ...printDesiredState(desired, family), ...rules };
}

export function printIpvsPlan(plan: Plan, settings: Settings): string {
  const text = ipvsPlanText(plan, settings);
  const parts = [
    ['sets', 'ipset restore -exist', text.ipset],
    ['virtual servers', 'ipvsadm --restore', text.ipvsadm],
    ['rules', restoreCommand(plan.family), text.restore + printJumps(text)],
    ['addresses', 'ip -force -batch -', text.ip],
  ] as const;
  return parts
    .map(([what, command, part]) => `# ${plan.family}, ${what}, for: ${command}\n${part}`)
    .join('\n');
}

export function desiredStateOf(plan: Plan, options: VirtualServerOptions): DesiredState {
  const desired = new DesiredState();
  for (const port of plan.servicePorts.values()) desired.add(compileVirtualServers(port, options));
  return desired;
}

export function printDesiredState(desired: DesiredState, family: Family): IpvsText {
  const ipset: string[] = [];
  for (const id of SET_IDS)
    ipset.push(createLine(id, family, desired.sizeOf(id)), `flush ${setName(id, family)}`);
  for (const id of SET_IDS)
    for (const [key] of desired.entriesOf(id)) ipset.push(`add ${setName(id, family)} ${key}`);
  const ipvsadm: string[] = [];
  for (const [, server] of desired.servers()) {
    ipvsadm.push(printServerLine(server));
    for (const { key } of server.destinations) ipvsadm.push(printDestinationLine(server, key, 1));
  }
  const ip = [`link add name ${DEVICE} type dummy`];
  for (const address of desired.boundIps()) ip.push(`address replace ${hostCidr(address)} dev ${DEVICE}`);
  return { ipset: textOf(ipset), ipvsadm: textOf(ipvsadm), ip: textOf(ip) };
}

function textOf(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join('');
}

function createLine(id: SetId, family: Family, size: number): string {
  const { type } = IPSETS[id];
  const head = `create ${setName(id, family)} ${type}`;
  if (type === 'bitmap:port') return `${head} range 0-65535`;
  return `${head} family ${family === 'IPv4' ? 'inet' : 'inet6'} hashsize 1024 maxelem ${capacityFor(size)}`;
}

const SERVER_OPTIONS: Readonly<Record<Protocol, string>> = { TCP: '-t', UDP: '-u', SCTP: '--sctp-service' };

/** `-A -t 10.96.0.1:80 -s rr -p 10800`, as `ipvsadm` writes it. */
export function printServerLine(server: ServerAttributes): string {
  const { scheduler, timeout, flags } = server;
  const persistence = timeout === 0 ? '' : ` -p ${timeout}`;
  const schedulerFlags = (flags & MH_PORT) === 0 ? '' : ' -b mh-port';
  return `-A ${nameOf(server)} -s ${scheduler}${persistence}${schedulerFlags}`;
}

/** `-a -t 10.96.0.1:80 -r 10.244.0.1:8080 -m -w 1` */
export function printDestinationLine(server: ServerKey, key: string, weight: number): string {
  return `-a ${nameOf(server)} -r ${key} -m -w ${weight}`;
}

function nameOf({ protocol, ip, port }: ServerKey): string {
  return `${SERVER_OPTIONS[protocol]} ${hostPort(ip, port)}`;
}
