/**
 * Everything that a plan needs besides rules, as the text that the usual programs take: for people to read, and for a
 * kernel that has nothing yet. The order is that in which it may be written: sets, virtual servers, the rules (by the
 * caller), and then the addresses that bring the packets.
 */
import { type Family, hostCidr, hostPort } from '../../../model/ip.ts';
import type { Protocol } from '../../../model/objects.ts';
import type { Plan } from '../../../plan/types.ts';
import {
  type VirtualServerOptions,
  compileVirtualServers,
  MH_PORT,
  type ServerKey,
  type VirtualServer,
} from './compile.ts';
import { DesiredState } from './desiredState.ts';
import { capacityFor, entryKey, SET_IDS, type SetId, setName, IPSETS } from './sets.ts';

export interface IpvsText {
  /** For `ipset restore -exist`. Sets are emptied first, so that a second time leaves the same. */
  readonly ipset: string;
  /** For `ipvsadm --restore`, which takes no comments, and goes on after what is there already. */
  readonly ipvsadm: string;
  /** For `ip -force -batch -`: the device may be there, and there is no word for that. */
  readonly ip: string;
}

/** It has every address of a service. */
export const DEVICE = 'kube-ipvs0';

export function desiredStateOf(plan: Plan, options: VirtualServerOptions): DesiredState {
  const desired = new DesiredState();
  for (const port of plan.servicePorts.values()) desired.add(compileVirtualServers(port, options));
  return desired;
}

/** Which of the sets the rules have to match. */
export function filledSets(desired: DesiredState): readonly SetId[] {
  return SET_IDS.filter((id) => desired.sizeOf(id) > 0);
}

export function printDesiredState(desired: DesiredState, family: Family): IpvsText {
  return {
    ipset: join(setLines(desired, family)),
    ipvsadm: join(serverLines(desired)),
    ip: join(addressLines(desired)),
  };
}

function* setLines(desired: DesiredState, family: Family): Generator<string> {
  for (const id of SET_IDS) {
    const size = desired.sizeOf(id);
    if (size === 0 && 'onDemand' in IPSETS[id]) continue;
    yield createLine(id, family, size);
    yield `flush ${setName(id, family)}`;
  }
  for (const id of SET_IDS)
    for (const [, entry] of desired.entriesOf(id)) yield `add ${setName(id, family)} ${entryKey(entry)}`;
}

function createLine(id: SetId, family: Family, size: number): string {
  const { type } = IPSETS[id];
  const head = `create ${setName(id, family)} ${type}`;
  if (type === 'bitmap:port') return `${head} range 0-65535`;
  return `${head} family ${family === 'IPv4' ? 'inet' : 'inet6'} hashsize 1024 maxelem ${capacityFor(size)}`;
}

const SERVER_OPTIONS: Readonly<Record<Protocol, string>> = { TCP: '-t', UDP: '-u', SCTP: '--sctp-service' };

function* serverLines(desired: DesiredState): Generator<string> {
  for (const [, server] of desired.servers()) {
    const name = serverName(server);
    yield `-A ${name} -s ${server.scheduler}${persistence(server)}${schedulerFlags(server)}`;
    for (const { key } of server.destinations) yield `-a ${name} -r ${key} -m -w 1`;
  }
}

function serverName({ protocol, ip, port }: ServerKey): string {
  return `${SERVER_OPTIONS[protocol]} ${hostPort(ip, port)}`;
}

function persistence({ timeout }: VirtualServer): string {
  return timeout === 0 ? '' : ` -p ${timeout}`;
}

function schedulerFlags({ flags }: VirtualServer): string {
  return (flags & MH_PORT) === 0 ? '' : ' -b mh-port';
}

function* addressLines({ addresses }: DesiredState): Generator<string> {
  yield `link add name ${DEVICE} type dummy`;
  for (const ip of addresses.keys()) yield `address replace ${hostCidr(ip)} dev ${DEVICE}`;
}

function join(lines: Iterable<string>): string {
  let text = '';
  for (const line of lines) text += `${line}\n`;
  return text;
}
