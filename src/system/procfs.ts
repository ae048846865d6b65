/** What /proc knows of processes: which has something open, which has a port, which an earlier run left behind. */
import { readFileSync, readdirSync, readlinkSync } from 'node:fs';
import { basename } from 'node:path';
import { attempt } from '../errors.ts';
import { type Ip, parseIp } from '../model/ip.ts';
import type { PortAddress } from './heldPorts.ts';

export interface Holder {
  readonly pid: number;
  /** `undefined` when the process has ended, or is in another pid namespace. */
  readonly command: string | undefined;
}

/** `pid 123 (iptables-restor)` */
export function printHolder(holder: Holder | undefined): string {
  if (!holder) return 'a process that cannot be seen from here';
  return holder.command === undefined ? `pid ${holder.pid}` : `pid ${holder.pid} (${holder.command})`;
}

export function holderOf(pid: number): Holder {
  const read = (name: string): string | undefined =>
    attempt(() => readFileSync(`/proc/${pid}/${name}`, 'utf8').trim());
  const command = read('comm');
  // Node 24 and newer call the thread so that a process is named for: of those, the program's file.
  if (command !== 'MainThread') return { pid, command };
  return { pid, command: basename(read('cmdline')?.split('\0')[0] ?? '') || command };
}

function processIds(): readonly number[] {
  const names = attempt(() => readdirSync('/proc')) ?? [];
  return names.flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []));
}

/** Of every process that we may look into. */
export function* openDescriptors(): Generator<{ readonly pid: number; readonly descriptor: string }> {
  for (const pid of processIds())
    for (const descriptor of attempt(() => readdirSync(`/proc/${pid}/fd`)) ?? []) yield { pid, descriptor };
}

/** By the inode of the socket, in one walk however many there are. Those that nobody is seen to hold are left out. */
export function socketHolders(inodes: ReadonlySet<string>): ReadonlyMap<string, Holder> {
  const found = new Map<string, Holder>();
  if (inodes.size === 0) return found;
  for (const { pid, descriptor } of openDescriptors()) {
    const link = attempt(() => readlinkSync(`/proc/${pid}/fd/${descriptor}`)) ?? '';
    const inode = /^socket:\[(\d+)\]$/.exec(link)?.[1];
    if (inode === undefined || !inodes.has(inode) || found.has(inode)) continue;
    found.set(inode, holderOf(pid));
    if (found.size === inodes.size) break;
  }
  return found;
}

/** Which process has which port. Slow: only called when something has failed already. One walk over all processes. Ports whose owner cannot be seen are left out. */
export function portOwners(ports: readonly PortAddress[]): ReadonlyMap<PortAddress, Holder> {
  const listed = new Map(['tcp', 'tcp6', 'udp', 'udp6'].map((file) => [file, listSockets(file)]));
  const inodes = new Map(
    ports.flatMap((port) => {
      const files = port.family === 'IPv4' ? ['', '6'] : ['6'];
      const sockets = files.flatMap((file) => listed.get(port.protocol.toLowerCase() + file) ?? []);
      const inode = inodeOf(port, sockets);
      return inode === undefined ? [] : [[port, inode] as const];
    }),
  );
  const holders = socketHolders(new Set(inodes.values()));
  return new Map(
    [...inodes].flatMap(([port, inode]) => {
      const owner = holders.get(inode);
      return owner ? [[port, owner] as const] : [];
    }),
  );
}

/** A listener before a client that happens to use the port for a connection of its own. */
function inodeOf(wanted: PortAddress, sockets: ReturnType<typeof listSockets>): string | undefined {
  const conflicting = sockets.filter(({ ip, port }) => port === wanted.port && overlap(wanted.ip, ip));
  return (conflicting.find(({ listens }) => listens) ?? conflicting[0])?.inode;
}

/** `::` stands for IPv4 too, unless its program says otherwise. */
function overlap(wanted: Ip | '', other: Ip): boolean {
  return wanted === '' || wanted === other || other === '0.0.0.0' || other === '::';
}

/** A socket whose process has ended, as in TIME_WAIT, has no inode. */
const NO_INODE = '0';
const LISTEN = '0A';

function listSockets(file: string) {
  return read(`/proc/net/${file}`)
    .split('\n')
    .flatMap((line) => {
      const words = line.trim().split(/\s+/);
      const [address = '', port = ''] = (words[1] ?? '').split(':');
      const inode = words[9];
      const ip = parseIp(addressText(address));
      if (ip === undefined || inode === undefined || inode === NO_INODE) return [];
      return [{ ip, port: Number.parseInt(port, 16), listens: words[3] === LISTEN, inode }];
    });
}

/** The kernel prints addresses as numbers of four bytes in the machine's order: `0100007F` is 127.0.0.1. */
function addressText(hex: string): string {
  const numbers = (hex.match(/.{8}/g) ?? []).map((word) => Number.parseInt(word, 16));
  const bytes = Buffer.from(new Uint32Array(numbers).buffer);
  return bytes.length === 4 ? bytes.join('.') : (bytes.toString('hex').match(/.{4}/g) ?? []).join(':');
}

/** In the environment of each child: the process that started it. */
export const PARENT_VARIABLE = 'JUNCTION_PARENT';

/**
 * This process as its children name it: number, time of start, the namespace in which the number means it, and the
 * network namespace that it serves. Only one Junction serves a network namespace: the children of others are theirs.
 */
export function parentMark(): string {
  return [process.pid, startTime(process.pid) ?? '', namespace('pid'), namespace('net')].join(':');
}

/**
 * Kills, with SIGKILL, programs that earlier runs in our PID and network namespace left behind, and returns them: a hung
 * iptables outlives a proxy that was killed with SIGKILL, and may hold the xtables lock for ever.
 */
export function killOrphans(): readonly { readonly pid: number; readonly command: string }[] {
  const orphans: { readonly pid: number; readonly command: string }[] = [];
  for (const pid of processIds()) {
    const mark = markOf(pid);
    if (pid === process.pid || mark === undefined || !isOrphaned(mark)) continue;
    const command = read(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').trim();
    // Otherwise it has ended meanwhile.
    if (attempt(() => process.kill(pid, 'SIGKILL'))) orphans.push({ pid, command });
  }
  return orphans;
}

function markOf(pid: number): string | undefined {
  const start = `${PARENT_VARIABLE}=`;
  const variables = read(`/proc/${pid}/environ`).split('\0');
  return variables.find((each) => each.startsWith(start))?.slice(start.length);
}

function isOrphaned(mark: string): boolean {
  const [pid = '', startedAt = '', pidNamespace = '', netNamespace = ''] = mark.split(':');
  if (startedAt === '' || pidNamespace === '' || netNamespace === '') return false;
  if (pidNamespace !== namespace('pid') || netNamespace !== namespace('net')) return false;
  return startTime(Number(pid)) !== startedAt;
}

/** In ticks since the machine booted: with the number, it names one process. */
function startTime(pid: number): string | undefined {
  const stat = read(`/proc/${pid}/stat`);
  // The name of the program, in parentheses, may have spaces; 19 fields stand between it and the time of start.
  return stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .at(19);
}

function namespace(kind: 'net' | 'pid'): string {
  return (attempt(() => readlinkSync(`/proc/self/ns/${kind}`)) ?? '').replace(/\D/g, '');
}

/** Empty when it cannot be read. */
function read(path: string): string {
  return attempt(() => readFileSync(path, 'utf8')) ?? '';
}
