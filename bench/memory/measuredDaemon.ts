/** One run of the daemon, and what the kernel says of its memory. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Status } from '../../src/explain/status.ts';
import { ask } from '../questions/ask.ts';
import { type ContainerFiles, flagsFor } from '../sizing/container.ts';
import type { HeapNumbers, Mappings, MemoryTask, ProcessRun } from './messages.ts';

const PROBE = pathToFileURL(fileURLToPath(new URL('bench-memory-probe.js', import.meta.url))).href;
const TICKS = 100;
const KIBIBYTE = 1024;
const PATIENCE_MS = 300_000;
const POLL_MS = 50;
/** glibc's arenas begin at multiples of this. */
const ARENA_BYTES = 64 << 20;

export async function measureDaemon(
  task: MemoryTask,
  files: ContainerFiles,
  withSnapshot: boolean,
): Promise<ProcessRun> {
  const startedAt = performance.now();
  const daemon = new MeasuredDaemon(task, files, withSnapshot);
  try {
    await daemon.served(task.sizes.services);
    const ms = performance.now() - startedAt;
    const { resident: first } = daemon.status();
    const cpuMs = daemon.cpuMs();
    await sleep(task.settleSeconds * 1000);
    const { resident: settled, peak } = daemon.status();
    const mappings = daemon.mappings();
    return { ms, cpuMs, first, settled, peak, mappings, heap: await daemon.heap() };
  } finally {
    await daemon.end();
  }
}

class MeasuredDaemon {
  readonly #files: ContainerFiles;
  readonly #process: ChildProcess;
  #lastLines = '';

  constructor(task: MemoryTask, files: ContainerFiles, withSnapshot: boolean) {
    this.#files = files;
    const env = {
      ...process.env,
      NODE_OPTIONS: `${task.nodeOptions} --import=${PROBE}`,
      JUNCTION_BENCH_PROBE: files.state,
      JUNCTION_BENCH_SNAPSHOT: withSnapshot ? '1' : '0',
    };
    const args = [task.program, 'run', ...flagsFor(task.mode, files)];
    this.#process = spawn(process.execPath, args, { env, stdio: ['ignore', 'ignore', 'pipe'] });
    this.#process.stderr?.on('data', (bytes: Buffer) => {
      this.#lastLines = (this.#lastLines + bytes.toString()).slice(-2000);
    });
  }

  async served(services: number): Promise<void> {
    await this.#until(async () => {
      const answer = await ask(this.#files.socket, '/v1/status').catch(() => undefined);
      if (answer === undefined || !answer.text.startsWith('{')) return false;
      const { families = [] } = JSON.parse(answer.text) as Partial<Status>;
      const isServed = families.every((each) => each.isServed);
      return isServed && families.some(({ services: known }) => known >= services);
    });
  }

  status(): { readonly resident: number; readonly peak: number } {
    const text = this.#proc('status');
    const field = (name: string): number =>
      Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(text)?.[1]) * KIBIBYTE;
    return { resident: field('VmRSS'), peak: field('VmHWM') };
  }

  /** With that of programs that it started and that have ended. */
  cpuMs(): number {
    const fields = this.#proc('stat').split(') ')[1]?.split(' ') ?? [];
    return (fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0) * 1000) / TICKS;
  }

  mappings(): Mappings {
    const sums = { files: 0, malloc: 0, code: 0, stacks: 0, others: 0 };
    let kind: keyof Mappings = 'others';
    for (const line of this.#proc('smaps').split('\n')) {
      const [, start, rights, name] = /^([0-9a-f]+)-[0-9a-f]+ (\S+) \S+ \S+ \d+\s*(.*)$/.exec(line) ?? [];
      if (start !== undefined) kind = kindOf(Number.parseInt(start, 16), rights ?? '', name ?? '');
      const resident = /^Rss:\s+(\d+) kB$/.exec(line)?.[1];
      if (resident !== undefined) sums[kind] += Number(resident) * KIBIBYTE;
    }
    return sums;
  }

  async heap(): Promise<HeapNumbers> {
    const path = join(this.#files.state, 'heap.json');
    rmSync(path, { force: true });
    this.#process.kill('SIGUSR2');
    await this.#until(() => Promise.resolve(existsSync(path)));
    return JSON.parse(readFileSync(path, 'utf8')) as HeapNumbers;
  }

  async end(): Promise<void> {
    if (this.#process.exitCode !== null) return;
    const ended = once(this.#process, 'exit');
    this.#process.kill();
    await ended;
  }

  #proc(file: string): string {
    return readFileSync(`/proc/${this.#process.pid}/${file}`, 'utf8');
  }

  async #until(holds: () => Promise<boolean>): Promise<void> {
    for (const end = Date.now() + PATIENCE_MS; Date.now() < end; await sleep(POLL_MS)) {
      if (this.#process.exitCode !== null) break;
      if (await holds()) return;
    }
    throw new Error(`the daemon has ended, or took more than five minutes\n${this.#lastLines}`);
  }
}

function kindOf(start: number, rights: string, name: string): keyof Mappings {
  if (name === '[heap]') return 'malloc';
  if (name === '[stack]') return 'stacks';
  if (name.startsWith('/')) return 'files';
  if (rights.includes('x')) return 'code';
  return start % ARENA_BYTES === 0 ? 'malloc' : 'others';
}
