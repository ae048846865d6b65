/** A pod's memory cgroup with its containers', as kubelet makes them; both versions of cgroups. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * What the two versions call one thing, with that of the groups below. `kernel` is a file of its own in the first, a line
 * of memory.stat in the second.
 */
const FILES = {
  1: { usage: 'memory.usage_in_bytes', limit: 'memory.limit_in_bytes', pageCache: 'total_cache' },
  2: { usage: 'memory.current', limit: 'memory.max', pageCache: 'file' },
} as const;

export type GroupVersion = keyof typeof FILES;

export interface Charge {
  readonly charged: number;
  readonly pageCache: number;
  readonly kernel: number;
}

export class MemoryGroup {
  readonly version: GroupVersion;
  readonly #path: string;

  private constructor(path: string, version: GroupVersion) {
    this.#path = path;
    this.version = version;
  }

  /** A pod's, below the root: nothing of this process's own group is counted. */
  static openPod(name: string, limit: number | undefined): MemoryGroup {
    const { root, version } = findController();
    const pod = new MemoryGroup(join(root, name), version);
    if (version === 2) writeFileSync(join(root, 'cgroup.subtree_control'), '+memory');
    pod.#make(limit);
    if (version === 2) writeFileSync(join(pod.#path, 'cgroup.subtree_control'), '+memory');
    return pod;
  }

  openContainer(name: string, limit: number | undefined): MemoryGroup {
    const container = new MemoryGroup(join(this.#path, name), this.version);
    container.#make(limit);
    return container;
  }

  #make(limit: number | undefined): void {
    mkdirSync(this.#path);
    if (limit !== undefined) writeFileSync(join(this.#path, FILES[this.version].limit), String(limit));
  }

  /** The command, started inside: what it allocates from its first moment is charged here. */
  enter(command: readonly [string, ...string[]]): readonly [string, ...string[]] {
    return ['sh', '-c', 'echo $$ > "$0" && exec "$@"', join(this.#path, 'cgroup.procs'), ...command];
  }

  charge(): Charge {
    const statistics = this.#read('memory.stat');
    const { usage, pageCache } = FILES[this.version];
    return {
      charged: Number(this.#read(usage)),
      pageCache: valueOf(statistics, pageCache),
      kernel:
        this.version === 1 ? Number(this.#read('memory.kmem.usage_in_bytes')) : valueOf(statistics, 'kernel'),
    };
  }

  /** Processes that the kernel killed because memory was short. */
  kills(): number {
    return valueOf(this.#read(this.version === 1 ? 'memory.oom_control' : 'memory.events'), 'oom_kill');
  }

  #read(file: string): string {
    return readFileSync(join(this.#path, file), 'utf8');
  }

  /** Ends what is left in it, as a container's runtime does. What is still charged goes to the group above. */
  async close(): Promise<void> {
    for (;;) {
      const processes = this.#read('cgroup.procs').split('\n').filter(Boolean).map(Number);
      if (processes.length === 0) break;
      for (const pid of processes) endProcess(pid);
      await sleep(50);
    }
    rmdirSync(this.#path);
  }
}

function endProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended meanwhile.
  }
}

function valueOf(text: string, name: string): number {
  return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1]);
}

function findController(): { readonly root: string; readonly version: GroupVersion } {
  const mounts = readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' '));
  for (const [, path = '', type, options = ''] of mounts) {
    if (type === 'cgroup' && options.split(',').includes('memory')) return { root: path, version: 1 };
    if (type === 'cgroup2' && hasMemory(path)) return { root: path, version: 2 };
  }
  return { root: mountOwn(), version: 2 };
}

function hasMemory(root: string): boolean {
  return readFileSync(join(root, 'cgroup.controllers'), 'utf8').split(/\s+/).includes('memory');
}

/** In a guest that nobody has set up. */
function mountOwn(): string {
  const path = join(tmpdir(), 'junction-bench-cgroup');
  if (!existsSync(path)) mkdirSync(path);
  execFileSync('mount', ['-t', 'cgroup2', 'none', path]);
  if (!hasMemory(path)) throw new Error('this kernel does not count the memory of cgroups');
  return path;
}
