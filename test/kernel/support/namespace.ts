/** A network namespace of our own, held open by a sleeping process. */
import { spawn, spawnSync } from 'node:child_process';
import { readlinkSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type CommandRunner, prefixed, run } from '../../../src/kernel/process.ts';

const ROOT = process.getuid?.() === 0;
const UNSHARE = ROOT ? ['--net'] : ['--user', '--map-root-user', '--net'];

export const namespacesWork = spawnSync('unshare', [...UNSHARE, 'true']).status === 0;

export interface Namespace {
  /** Runs inside, with a lock file of its own. */
  readonly runner: CommandRunner;
  readonly lockPath: string;
  readonly close: () => Promise<void>;
}

export async function openNamespace(): Promise<Namespace> {
  const holder = spawn('unshare', [...UNSHARE, 'sleep', '600'], { stdio: 'ignore' });
  const pid = String(holder.pid);
  const ours = readlinkSync('/proc/self/ns/net');
  while (readlinkSync(`/proc/${pid}/ns/net`) === ours) await sleep(5);
  const directory = await mkdtemp(join(tmpdir(), 'junction-'));
  const lockPath = join(directory, 'xtables.lock');
  await writeFile(lockPath, '', { mode: 0o600 });
  const enter = ROOT ? ['--net'] : ['--user', '--net', '--preserve-credentials'];
  const inside = prefixed(run, ['nsenter', '--target', pid, ...enter, '--']);
  return {
    runner: (argv, options) =>
      inside(argv, { ...options, env: { XTABLES_LOCKFILE: lockPath, ...options?.env } }),
    lockPath,
    close: async () => {
      holder.kill('SIGKILL');
      await rm(directory, { recursive: true });
    },
  };
}
