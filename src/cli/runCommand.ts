/** A daemon under supervision: how it ends is decided here, and what the runs before it ended with is told first. */
import type { ValidConfig } from '../config/index.ts';
import { RunRecord } from '../daemon/runRecord.ts';
import { Supervision } from '../daemon/supervision.ts';
import { exitNow } from '../system/libc.ts';
import { killOrphans, PARENT_VARIABLE, parentMark } from '../system/procfs.ts';
import type { Log } from '../log/log.ts';
import type { Output } from './output.ts';

export async function supervised(
  config: ValidConfig,
  log: Log,
  io: Output,
  work: (supervision: Supervision) => Promise<number>,
): Promise<number> {
  io.onLost?.(({ lines, reason }) => log.warn('Log lines were lost', { lines, reason }));
  const record = RunRecord.open(config.junction.stateDir);
  const supervision = new Supervision({
    log,
    record,
    flush: (milliseconds) => io.flush?.(milliseconds),
    exitNow,
  });
  supervision.start();
  try {
    tellOfPreviousRuns(record, log);
    for (const { pid, command } of killOrphans())
      log.warn('Killed a program that an earlier run left behind', { pid, command });
    // All children inherit it, those of credential plugins too.
    process.env[PARENT_VARIABLE] = parentMark();
    return await work(supervision);
  } finally {
    supervision.end();
  }
}

function tellOfPreviousRuns({ previous, problem }: RunRecord, log: Log): void {
  if (problem !== undefined) log.info('Crashes are not remembered for the next run', { reason: problem });
  if (!previous.last) return;
  const { cause, at, what } = previous.last;
  log.error('The run before this one crashed', {
    cause,
    ...(cause === 'killed' ? { startedAt: at } : { at }),
    what,
    crashes: previous.crashes.uncaught_error + previous.crashes.killed,
  });
}
