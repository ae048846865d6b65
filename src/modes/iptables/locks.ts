/**
 * Taking the xtables locks ourselves, for an iptables-restore that takes none.
 *
 * There are two, because iptables changed its mind: versions 1.4.20 to 1.6.0 bind an abstract unix socket, later ones
 * lock a file. Other programs on the node may be of either age.
 */
import { closeSync, openSync, readFileSync, statSync } from 'node:fs';
import { constants } from 'node:os';
import { attempt, JunctionError } from '../../errors.ts';
import { type Holder, holderOf, holderOfSocket, openDescriptors, printHolder } from '../../system/procfs.ts';
import { AF_UNIX, errnoName, libc, SOCK_CLOEXEC, SOCK_STREAM, unixAddress } from '../../system/libc.ts';
import { systemClock } from '../../time/systemClock.ts';
import { wait } from '../../time/wait.ts';

export const XTABLES_LOCK_PATH = '/run/xtables.lock';
const XTABLES_SOCKET = 'xtables';

export interface LockOptions {
  readonly path?: string | undefined;
  readonly socketName?: string | undefined;
  /** For each of the two locks. */
  readonly timeoutMs?: number | undefined;
  readonly retryMs?: number | undefined;
}

export async function takeXtablesLocks(options: LockOptions = {}): Promise<{ release(): void }> {
  const path = options.path ?? XTABLES_LOCK_PATH;
  const name = options.socketName ?? XTABLES_SOCKET;
  const file = openLockFile(path);
  try {
    if (!(await retry(() => tryFlock(file, path), options))) throw held(path, printHolder(lockHolder(path)));
    const socket = await retry(() => tryBind(name), options);
    if (!socket) throw held(`@${name}`, printHolder(socketHolder(name)));
    return {
      release: () => {
        libc().close(socket.fd);
        closeSync(file);
      },
    };
  } catch (error) {
    closeSync(file);
    throw error;
  }
}

/** The error for a lock that was waited for in vain, by us or by iptables. */
export function held(lock: string, holder: string): JunctionError {
  return new JunctionError('XTABLES_LOCK_HELD', `the xtables lock ${lock} is held by ${holder}`);
}

async function retry<T>(attempt: () => T | undefined, options: LockOptions): Promise<T | undefined> {
  const step = options.retryMs ?? 200;
  for (let left = options.timeoutMs ?? 2000; ; left -= step) {
    const result = attempt();
    if (result !== undefined || left < step) return result;
    await wait(systemClock, step);
  }
}

function openLockFile(path: string): number {
  try {
    return openSync(path, 'a', 0o600);
  } catch (cause) {
    throw new JunctionError('XTABLES_LOCK_UNUSABLE', `cannot open the xtables lock ${path}`, { cause });
  }
}

function tryFlock(fd: number, path: string): true | undefined {
  const { tryFlock: lock, errno } = libc();
  if (lock(fd) === 0) return true;
  const code = errno();
  if (code === constants.errno.EWOULDBLOCK || code === constants.errno.EINTR) return undefined;
  throw new JunctionError('XTABLES_LOCK_UNUSABLE', `cannot lock ${path}: ${errnoName(code)}`);
}

/**
 * Not by node:net: it pads an abstract name to the full 108 bytes, and `xtables` with padding is another name than the
 * 8 bytes (a NUL and `xtables`) that iptables binds.
 */
function tryBind(name: string): { readonly fd: number } | undefined {
  const { socket, bind, close, errno } = libc();
  const fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0)
    throw new JunctionError('XTABLES_LOCK_UNUSABLE', `cannot make a unix socket: ${errnoName(errno())}`);
  const address = unixAddress(`\0${name}`);
  if (bind(fd, address, address.length) === 0) return { fd };
  const code = errno();
  close(fd);
  if (code === constants.errno.EADDRINUSE) return undefined;
  throw new JunctionError('XTABLES_LOCK_UNUSABLE', `cannot bind the socket @${name}: ${errnoName(code)}`);
}

/* Who holds a lock, as far as /proc tells. Only ever asked when something has failed already, so it may be slow. */

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
    return inode === undefined ? undefined : holderOfSocket(inode);
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
