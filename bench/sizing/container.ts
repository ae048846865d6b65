/** Junction as a container runs it: a process in a memory cgroup of its own, with a Node that nobody else has in memory. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { FamilyStatus, Status } from '../../src/explain/status.ts';
import { NODE_NAME } from './serverMessages.ts';
import { ask } from '../ask.ts';
import type { MemoryGroup } from './memoryGroup.ts';
import type { Sample, SizingMode, SizingTask } from './messages.ts';

const JUNCTION = fileURLToPath(new URL('junction.js', import.meta.url));
/** Clock ticks a second, of everything under /proc. */
const TICKS = 100;
const KIBIBYTE = 1024;
const PATIENCE_MS = 300_000;
/** With too little memory for its page cache a process does hardly anything but read its program from the disk. */
const COMMAND_PATIENCE_MS = 120_000;
const POLL_MS = 100;

/** The container has ended, and nobody asked for it. */
export class Ended extends Error {}

export interface ContainerFiles {
  readonly node: string;
  readonly kubeconfig: string;
  readonly socket: string;
}

export class Container {
  logBytes = 0;
  /** Commands that the kernel killed because memory was short. */
  readonly killed: string[] = [];
  readonly #pod: MemoryGroup;
  readonly #group: MemoryGroup;
  readonly #files: ContainerFiles;
  readonly #environment: NodeJS.ProcessEnv;
  readonly #process: ChildProcess;
  #lastLines = '';
  #ending: string | undefined;

  constructor(name: string, pod: MemoryGroup, files: ContainerFiles, task: SizingTask) {
    this.#pod = pod;
    this.#group = pod.openContainer(name, task.limit);
    this.#files = files;
    const command = [files.node, JUNCTION, 'run', ...flagsFor(task.mode, files)] as const;
    const [program, ...args] = this.#group.enter([...command]);
    this.#environment = { ...process.env, NODE_OPTIONS: task.nodeOptions };
    this.#process = spawn(program, args, { env: this.#environment, stdio: ['ignore', 'ignore', 'pipe'] });
    this.#process.stderr?.on('data', (bytes: Buffer) => {
      this.logBytes += bytes.length;
      this.#lastLines = (this.#lastLines + bytes.toString()).slice(-4000);
    });
    this.#process.once('exit', (code, signal) => {
      const reason = signal === 'SIGKILL' && this.#group.kills() > 0 ? 'out of memory' : `${signal ?? code}`;
      this.#ending = /heap out of memory/.test(this.#lastLines) ? "Node's heap was full" : reason;
    });
  }

  /** All services are in the kernel, of every family that this machine has. */
  async served(services: number, isDualStack: boolean): Promise<void> {
    await this.#until((families) =>
      families.every(
        ({ family, isServed, services: known }) =>
          isServed && (known >= services || (family === 'IPv6' && !isDualStack)),
      ),
    );
  }

  /** Of what was deleted since then, everything is in the kernel again. */
  async repaired(since: number): Promise<void> {
    await this.#until((families) =>
      families.every(({ foreignChanges: { last }, lastSync }) => {
        const isNotified = last !== undefined && last.at >= since && last.repairedMs !== undefined;
        return isNotified || (lastSync?.kind === 'full' && lastSync.at >= since && lastSync.objects > 0);
      }),
    );
  }

  async #until(holds: (families: readonly FamilyStatus[]) => boolean): Promise<void> {
    for (const end = Date.now() + PATIENCE_MS; Date.now() < end; await sleep(POLL_MS)) {
      this.assertRuns();
      const answer = await ask(this.#files.socket, '/v1/status').catch(() => undefined);
      if (answer === undefined || !answer.text.startsWith('{')) continue;
      const { families = [] } = JSON.parse(answer.text) as Partial<Status>;
      if (families.length > 0 && holds(families)) return;
    }
    throw new Ended('not done within five minutes');
  }

  assertRuns(): void {
    if (this.#ending !== undefined) throw new Ended(this.#ending);
  }

  /** As `kubectl exec` runs it: its memory is the container's too. */
  async command(...args: readonly string[]): Promise<void> {
    const own = ['--api-socket', this.#files.socket];
    const [program, ...rest] = this.#group.enter([this.#files.node, JUNCTION, ...args, ...own]);
    const child = spawn(program, rest, { env: this.#environment, stdio: ['ignore', 'ignore', 'pipe'] });
    let complaint = '';
    child.stderr.on('data', (bytes: Buffer) => (complaint += bytes.toString()));
    let isLate = false;
    const timer = setTimeout(() => (isLate = child.kill('SIGKILL')), COMMAND_PATIENCE_MS);
    const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
    clearTimeout(timer);
    this.assertRuns();
    if (signal === 'SIGKILL') {
      this.killed.push(isLate ? `${args[0]} (after two minutes)` : `${args[0]}`);
      return;
    }
    // 1 of `doctor`: it found something.
    if (signal === null && (code === 0 || (args[0] === 'doctor' && code === 1))) return;
    throw new Ended(`junction ${args.join(' ')} ended with ${signal ?? code}: ${complaint.slice(-500)}`);
  }

  /** With that of programs that it started and that have ended. */
  cpuMs(): number {
    const fields = readFileSync(`/proc/${this.#process.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
    return (fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0) * 1000) / TICKS;
  }

  sample(): Sample {
    this.assertRuns();
    const status = readFileSync(`/proc/${this.#process.pid}/status`, 'utf8');
    const resident = Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * KIBIBYTE;
    return { resident, ...this.#pod.charge() };
  }

  async end(): Promise<void> {
    if (this.#ending === undefined) {
      const ended = once(this.#process, 'exit');
      this.#process.kill();
      await ended;
    }
    await this.#group.close();
  }
}

export function writeFiles(folder: string, port: number, ca: string): ContainerFiles {
  const kubeconfig = join(folder, 'kubeconfig');
  const cluster = { server: `https://127.0.0.1:${port}`, 'certificate-authority': ca };
  const contents = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'bench', cluster }],
    users: [{ name: 'bench', user: { token: 'benchmark' } }],
    contexts: [{ name: 'bench', context: { cluster: 'bench', user: 'bench' } }],
    'current-context': 'bench',
  };
  writeFileSync(kubeconfig, JSON.stringify(contents));
  const node = join(folder, 'node');
  copyFileSync(process.execPath, node);
  // Pages that this process has read would be charged to it and not to the container.
  execFileSync('dd', [`of=${node}`, 'oflag=nocache', 'conv=notrunc,fdatasync', 'count=0', 'status=none']);
  return { node, kubeconfig, socket: join(folder, 'api.sock') };
}

export function flagsFor(mode: SizingMode, { kubeconfig, socket }: ContainerFiles): readonly string[] {
  const [name = '', variant] = mode === 'ipvs' ? ['ipvs', 'legacy'] : mode.split('-');
  return [
    `--proxy-mode=${name}`,
    ...(variant === undefined ? [] : [`--iptables-variant=${variant}`]),
    `--kubeconfig=${kubeconfig}`,
    `--hostname-override=${NODE_NAME}`,
    '--cluster-cidr=10.128.0.0/9,fd00::/16',
    `--api-socket=${socket}`,
    // Settings of the machine, which a network namespace may not have.
    ...['max-per-core', 'min'].map((each) => `--conntrack-${each}=0`),
    ...['established', 'close-wait'].map((each) => `--conntrack-tcp-timeout-${each}=0s`),
  ];
}
