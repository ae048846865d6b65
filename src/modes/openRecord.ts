/** Opens the record of what was written, once the kernel notifies of changes and before anything is written. */
import { mkdirSync } from 'node:fs';
import { attempt } from '../errors.ts';
import { NETLINK_NETFILTER } from '../netlink/socket.ts';
import type { NetlinkThread } from '../netlink/thread.ts';
import { WrittenRecord } from '../system/record/writtenRecord.ts';
import type { GenerationCount } from './generationCount.ts';
import type { ModeOptions } from './mode.ts';

/** `undefined`: there is no place for it. */
export async function openRecord(
  { config, log }: Pick<ModeOptions, 'config' | 'log'>,
  generations: GenerationCount,
  thread: NetlinkThread,
): Promise<WrittenRecord | undefined> {
  const { mode, junction } = config;
  if (junction.stateDir === '') return undefined;
  // Not its parents: Node tries for ever where the kernel says ENOENT to every attempt, as below /proc.
  attempt(() => mkdirSync(junction.stateDir, { mode: 0o755 }));
  const generationAtStart = await generations.begin(thread.transactionChannel(NETLINK_NETFILTER));
  const record = new WrittenRecord({
    directory: junction.stateDir,
    mode,
    generationAtStart,
    generation: () => generations.now(),
    log,
  });
  generations.onOthers = () => record.touch();
  return record;
}
