/** A network namespace of our own, held open by a sleeping process. */
import { spawn, spawnSync } from 'node:child_process';
import { readlinkSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { TestContext } from 'vitest';
import { type CommandRunner, run } from '../../../src/system/processes.ts';
import { prefixed } from '../../../lab/prefixed.ts';

const ROOT = process.getuid?.() === 0;
const UNSHARE = ROOT ? ['--net'] : ['--user', '--map-root-user', '--net'];

const namespacesWork = spawnSync('unshare', [...UNSHARE, 'true']).status === 0;

/** Skips where no namespace can be made. On CI that is a failure: skipped is untested. */
export function requireNamespaces(context: Pick<TestContext, 'skip'>): void {
  if (namespacesWork) return;
  const reason = 'no network namespace can be made here: run as root, or allow user namespaces';
  if (process.env['CI'] === 'true') throw new Error(reason);
  context.skip(reason);
}

export interface Namespace {
  /** Runs inside, with a lock file of its own. */
  readonly runner: CommandRunner;
  readonly lockPath: string;
  readonly close: () => Promise<void>;
}

export async function openNamespace(): Promise<Namespace> {
  const holder = spawn('unshare', [...UNSHARE, 'sleep', '3600'], { stdio: 'ignore' });
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
