/** Who holds a lock, as far as /proc tells. Only ever asked when something has failed already, so it may be slow. */
import { readFileSync, readdirSync, readlinkSync, statSync } from 'node:fs';

export interface LockHolder {
  readonly pid: number;
  /** `undefined` when the process is gone, or in another pid namespace. */
  readonly command: string | undefined;
}

/** `pid 123 (iptables-restor)` */
export function printHolder(holder: LockHolder | undefined): string {
  if (!holder) return 'a process that cannot be seen from here';
  return holder.command === undefined ? `pid ${holder.pid}` : `pid ${holder.pid} (${holder.command})`;
}

/** The holder of a file lock. */
export function lockHolder(path: string): LockHolder | undefined {
  return attempt(() => {
    const inode = statSync(path).ino;
    return holderInLocks(inode) ?? holderInDescriptors(inode);
  });
}

/** The holder of an abstract unix socket, e.g. `xtables`, in this network namespace. */
export function socketHolder(name: string): LockHolder | undefined {
  return attempt(() => {
    const line = readFileSync('/proc/net/unix', 'utf8')
      .split('\n')
      .find((text) => text.endsWith(` @${name}`));
    const inode = line?.split(/\s+/)[6];
    if (inode === undefined) return undefined;
    return findProcess((pid, fd) => readlinkSync(`/proc/${pid}/fd/${fd}`) === `socket:[${inode}]`);
  });
}

/**
 * `1: FLOCK  ADVISORY  WRITE 4442 00:27:2 0 EOF`. Only the inode is compared: the device differs from what stat says
 * on overlay file systems. Lines with an arrow are waiters.
 */
const LOCK = /FLOCK\s+ADVISORY\s+WRITE\s+(\d+)\s+[0-9a-f]+:[0-9a-f]+:(\d+)\s/;

function holderInLocks(inode: number): LockHolder | undefined {
  for (const line of readFileSync('/proc/locks', 'utf8').split('\n')) {
    if (line.includes('->')) continue;
    const match = LOCK.exec(line);
    if (!match || Number(match[2]) !== inode) continue;
    const pid = Number(match[1]);
    const command = commandOf(pid);
    // The process that took the lock may have left it to a child, and 0 stands for another pid namespace.
    if (command !== undefined) return { pid, command };
  }
  return undefined;
}

function holderInDescriptors(inode: number): LockHolder | undefined {
  return findProcess((pid, fd) => {
    const info = readFileSync(`/proc/${pid}/fdinfo/${fd}`, 'utf8');
    return info
      .split('\n')
      .some((line) => line.startsWith('lock:') && Number(LOCK.exec(line)?.[2]) === inode);
  });
}

function findProcess(matches: (pid: string, fd: string) => boolean): LockHolder | undefined {
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    const fds = attempt(() => readdirSync(`/proc/${pid}/fd`)) ?? [];
    if (fds.some((fd) => attempt(() => matches(pid, fd)) ?? false)) {
      return { pid: Number(pid), command: commandOf(Number(pid)) };
    }
  }
  return undefined;
}

function commandOf(pid: number): string | undefined {
  return attempt(() => readFileSync(`/proc/${pid}/comm`, 'utf8').trim());
}

/** Processes come and go while we look. */
function attempt<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch {
    return undefined;
  }
}
