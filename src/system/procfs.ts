/** What /proc knows of processes: which has something open, which an earlier run left behind. */
import { readFileSync, readdirSync, readlinkSync } from 'node:fs';
import { basename } from 'node:path';
import { attempt } from '../errors.ts';

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

/** The process that is seen to hold the socket of this inode. */
export function holderOfSocket(inode: string): Holder | undefined {
  for (const { pid, descriptor } of openDescriptors()) {
    const link = attempt(() => readlinkSync(`/proc/${pid}/fd/${descriptor}`));
    if (link === `socket:[${inode}]`) return holderOf(pid);
  }
  return undefined;
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
