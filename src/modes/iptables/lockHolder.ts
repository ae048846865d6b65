/** Who holds a lock, as far as /proc tells. Only ever asked when something has failed already, so it may be slow. */
import { readFileSync, statSync } from 'node:fs';
import { attempt, type Holder, holderOf, openDescriptors, socketHolders } from '../../system/procfs.ts';

/** The holder of a file lock. */
export function lockHolder(path: string): Holder | undefined {
  return attempt(() => {
    const inode = statSync(path).ino;
    return holderInLocks(inode) ?? holderInDescriptors(inode);
  });
}

/** The holder of an abstract unix socket, e.g. `xtables`, in this network namespace. */
export function socketHolder(name: string): Holder | undefined {
  return attempt(() => {
    const line = readFileSync('/proc/net/unix', 'utf8')
      .split('\n')
      .find((text) => text.endsWith(` @${name}`));
    const inode = line?.split(/\s+/)[6];
    return inode === undefined ? undefined : socketHolders(new Set([inode])).get(inode);
  });
}

/**
 * `1: FLOCK  ADVISORY  WRITE 4442 00:27:2 0 EOF`. Only the inode is compared: the device differs from what stat says
 * on overlay file systems. Lines with an arrow are waiters.
 */
const LOCK = /FLOCK\s+ADVISORY\s+WRITE\s+(\d+)\s+[0-9a-f]+:[0-9a-f]+:(\d+)\s/;

function holderInLocks(inode: number): Holder | undefined {
  for (const line of readFileSync('/proc/locks', 'utf8').split('\n')) {
    if (line.includes('->')) continue;
    const match = LOCK.exec(line);
    if (!match || Number(match[2]) !== inode) continue;
    const holder = holderOf(Number(match[1]));
    // The process that took the lock may have left it to a child, and 0 stands for another pid namespace.
    if (holder.command !== undefined) return holder;
  }
  return undefined;
}

function holderInDescriptors(inode: number): Holder | undefined {
  for (const { pid, descriptor } of openDescriptors()) {
    const info = attempt(() => readFileSync(`/proc/${pid}/fdinfo/${descriptor}`, 'utf8')) ?? '';
    const locks = info.split('\n').filter((line) => line.startsWith('lock:'));
    if (locks.some((line) => Number(LOCK.exec(line)?.[2]) === inode)) return holderOf(pid);
  }
  return undefined;
}
