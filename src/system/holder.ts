/** Which process has something open, as far as /proc tells. Only asked when something has failed already: it is slow. */
import { readFileSync, readdirSync, readlinkSync } from 'node:fs';

export interface Holder {
  readonly pid: number;
  /** `undefined` when the process is gone, or in another pid namespace. */
  readonly command: string | undefined;
}

export interface OpenDescriptor {
  readonly pid: number;
  readonly descriptor: string;
}

/** `pid 123 (iptables-restor)` */
export function printHolder(holder: Holder | undefined): string {
  if (!holder) return 'a process that cannot be seen from here';
  return holder.command === undefined ? `pid ${holder.pid}` : `pid ${holder.pid} (${holder.command})`;
}

export function holderOf(pid: number): Holder {
  return { pid, command: attempt(() => readFileSync(`/proc/${pid}/comm`, 'utf8').trim()) };
}

/** Of every process that we may look into. */
export function* openDescriptors(): Generator<OpenDescriptor> {
  for (const name of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
    for (const descriptor of attempt(() => readdirSync(`/proc/${name}/fd`)) ?? [])
      yield { pid: Number(name), descriptor };
  }
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

/** Processes come and go while we look. */
export function attempt<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch {
    return undefined;
  }
}
