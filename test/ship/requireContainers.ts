import { existsSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import type { TestContext } from 'vitest';
import { PROFILE } from '../../lab/container/seccomp.ts';

/** What keeps runc from running a container here. */
export function whyNoContainers(): string | undefined {
  if (process.getuid?.() !== 0) return 'Containers are run by root alone.';
  if (spawnSync('runc', ['--version']).status !== 0) return 'runc is missing: sudo apt-get install -y runc';
  if (!existsSync(PROFILE))
    return `${PROFILE} is missing: sudo apt-get install -y golang-github-containers-common`;
  return existsSync('/sys/fs/cgroup') ? undefined : 'There are no control groups here, which runc needs.';
}

/** Skips the test where no container can be run, and says why. On CI that is a failure: there, skipped is untested. */
export function requireContainers(context: Pick<TestContext, 'skip'>): void {
  const reason = whyNoContainers();
  if (reason === undefined) return;
  if (process.env['CI'] === 'true') throw new Error(reason);
  context.skip(reason);
}
