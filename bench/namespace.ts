/** A network namespace of its own, gone when this process is. */
import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { readlinkSync } from 'node:fs';
import { prefixed } from '../lab/prefixed.ts';
import { type CommandRunner, run } from '../src/system/processes.ts';

export interface Namespace {
  /** Of the process that holds it. */
  readonly pid: number;
  readonly runner: CommandRunner;
  close(): void;
}

export async function openNamespace(): Promise<Namespace> {
  const holder = spawn('unshare', ['--net', 'cat'], { stdio: ['pipe', 'ignore', 'inherit'] });
  await isolated(holder);
  const { pid = 0 } = holder;
  return {
    pid,
    runner: prefixed(run, ['nsenter', `--net=/proc/${pid}/ns/net`]),
    close: () => void holder.kill('SIGKILL'),
  };
}

/** Runs a program of the benchmarks in a namespace of its own, with its task as JSON; returns what it printed, as JSON. */
export async function runInNamespace(program: string, task: unknown): Promise<unknown> {
  const namespace = await openNamespace();
  try {
    const { code, stdout, stderr } = await namespace.runner([
      process.execPath,
      program,
      JSON.stringify(task),
    ]);
    if (code !== 0) throw new Error(`the benchmark's program ended with ${code}\n${stderr}`);
    return JSON.parse(stdout);
  } finally {
    namespace.close();
  }
}

async function isolated(holder: ChildProcess): Promise<void> {
  const own = readlinkSync('/proc/self/ns/net');
  for (let tries = 0; tries < 200; tries++) {
    await sleep(10);
    if (holder.pid !== undefined && readlinkSync(`/proc/${holder.pid}/ns/net`) !== own) return;
  }
  throw new Error('no network namespace: run as root');
}
