/** The guest's own IPVS, through our code and through `ipvsadm`. */
import { spawnSync } from 'node:child_process';
import type { Change, ChangeOutcome } from '../../../src/netlink/batch.ts';
import { applyChanges } from '../../netlink/support/readers.ts';
import { newDestination, type IpvsServiceKey, newService } from '../../../src/netlink/ipvs.ts';
import { findIpvsFamily, flushIpvs } from '../../netlink/support/readers.ts';
import { NETLINK_GENERIC, NETLINK_ROUTE, NetlinkSocket } from '../../../src/netlink/socket.ts';
import { type Ip, parseIp } from '../../../src/model/ip.ts';

export interface IpvsKernel {
  readonly socket: NetlinkSocket;
  readonly links: NetlinkSocket;
  /** Of the generic-netlink family. */
  readonly id: number;
}

let opened: IpvsKernel | undefined;

/** On first use: the host reads these files too, and has none. */
export function ipvsKernel(): IpvsKernel {
  opened ??= open();
  return opened;
}

function open(): IpvsKernel {
  const socket = NetlinkSocket.open(NETLINK_GENERIC);
  const lookup = findIpvsFamily(socket);
  const id = lookup.state === 'present' ? lookup.id : failed(lookup.reason);
  return { socket, links: NetlinkSocket.open(NETLINK_ROUTE), id };
}

export const CLUSTER: IpvsServiceKey = { protocol: 'TCP', ip: ip('10.96.0.1'), port: 443 };
export const DNS: IpvsServiceKey = { protocol: 'UDP', ip: ip('10.96.0.10'), port: 53 };
export const SIX: IpvsServiceKey = { protocol: 'SCTP', ip: ip('fd00::1'), port: 9 };
export const NOBODY: IpvsServiceKey = { ...CLUSTER, port: 445 };
export const PLAIN = { scheduler: 'rr', flags: 0, timeout: 0, clientPrefix: 32 };
export const ONE = { ip: ip('10.1.0.1'), port: 6443, weight: 1 };
export const TWO = { ip: ip('10.1.0.2'), port: 6443, weight: 0 };

/** What most tests begin with, and nothing else. */
export function threeServices(): void {
  const { id } = ipvsKernel();
  apply([
    flushIpvs(id),
    newService(id, { ...CLUSTER, ...PLAIN }),
    newService(id, { ...DNS, ...PLAIN, flags: 1, timeout: 10_800 }),
    newService(id, { ...SIX, ...PLAIN, clientPrefix: 128 }),
    newDestination(id, CLUSTER, ONE),
    newDestination(id, CLUSTER, TWO),
    newDestination(id, DNS, { ip: ip('10.1.0.3'), port: 5353, weight: 1 }),
    newDestination(id, SIX, { ip: ip('fd00:1::1'), port: 90, weight: 1 }),
  ]);
}

/** `done`, `exists`, `absent`, or the name of the error. */
export function apply(
  changes: readonly Change[],
  socket: NetlinkSocket = ipvsKernel().socket,
): readonly string[] {
  return applyChanges(socket, changes).map(brief);
}

function brief(outcome: ChangeOutcome): string {
  return outcome.state === 'refused' ? outcome.name : outcome.state;
}

/** What `ipvsadm` would restore, sorted. */
export function saved(): readonly string[] {
  const lines = run('ipvsadm', '--save', '--numeric').split('\n');
  return lines
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .sort();
}

export function run(...argv: readonly string[]): string {
  const [program = '', ...words] = argv;
  const { stdout, stderr, status } = spawnSync(program, words, { encoding: 'utf8' });
  return status === 0 ? stdout : failed(`${argv.join(' ')}: ${stderr}`);
}

export function ip(text: string): Ip {
  return parseIp(text) ?? failed(`${text} is no address`);
}

export function failed(message: string): never {
  throw new Error(message);
}
