/** For tests that hold the kernel against the program nft. */
import { spawnSync } from 'node:child_process';
import type { TestContext } from 'vitest';

/** Skips where it is not installed. On CI that is a failure: skipped is untested. */
export function requireNft(context: Pick<TestContext, 'skip'>): void {
  if (spawnSync('nft', ['--version']).status === 0) return;
  const reason = 'the program nft is not installed: apt-get install nftables';
  if (process.env['CI'] === 'true') throw new Error(reason);
  context.skip(reason);
}
