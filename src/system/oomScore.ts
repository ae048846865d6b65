/** How soon the kernel ends this process when memory runs out: -1000 never, 1000 first. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Log } from '../log/log.ts';

export interface OomScoreOptions {
  readonly log: Pick<Log, 'verbose'>;
  /** Instead of /proc. */
  readonly root?: string | undefined;
}

/** Lowering it takes CAP_SYS_RESOURCE, and everything works without: answers whether it is done. */
export function applyOomScore(score: number, { log, root = '/proc' }: OomScoreOptions): boolean {
  try {
    writeFileSync(join(root, 'self/oom_score_adj'), String(score));
    return true;
  } catch (error) {
    log.verbose(2, 'Failed to apply OOMScore', { oomScoreAdj: score, err: error });
    return false;
  }
}
