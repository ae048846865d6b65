/**
 * Programs that an earlier run started and left behind: a hung iptables outlives a proxy that was killed with SIGKILL,
 * and may hold the xtables lock for ever. Every child has the process that started it in its environment.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** In the environment of each child. */
export const PARENT_VARIABLE = 'JUNCTION_PARENT';

export interface Orphan {
  readonly pid: number;
  readonly command: string;
}

/**
 * This process as its children name it: number, time of start, the namespace in which the number means it, and the
 * network namespace that it serves. Only one Junction serves a network namespace: the children of others are theirs.
 */
export function parentMark(): string {
  return [process.pid, startTime(process.pid) ?? '', namespace('pid'), namespace('net')].join(':');
}

/** Kills, with SIGKILL, what earlier runs in our PID and network namespace left behind. Returns what that was. */
export function killOrphans(): readonly Orphan[] {
  const orphans: Orphan[] = [];
  for (const pid of processes()) {
    const mark = markOf(pid);
    if (pid === process.pid || mark === undefined || !isOrphaned(mark)) continue;
    const command = readOr(`/proc/${pid}/cmdline`, '').replaceAll('\0', ' ').trim();
    try {
      process.kill(pid, 'SIGKILL');
      orphans.push({ pid, command });
    } catch {
      // It has ended meanwhile.
    }
  }
  return orphans;
}

function processes(): readonly number[] {
  try {
    return readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []));
  } catch {
    return [];
  }
}

function markOf(pid: number): string | undefined {
  const start = `${PARENT_VARIABLE}=`;
  const variables = readOr(`/proc/${pid}/environ`, '').split('\0');
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
  const stat = readOr(`/proc/${pid}/stat`, '');
  // The name of the program, in parentheses, may have spaces; 19 fields follow it before the time of start.
  return stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .at(19);
}

function namespace(kind: 'net' | 'pid'): string {
  try {
    return readlinkSync(`/proc/self/ns/${kind}`).replace(/\D/g, '');
  } catch {
    return '';
  }
}

function readOr(path: string, otherwise: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return otherwise;
  }
}
