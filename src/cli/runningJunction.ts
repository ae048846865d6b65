/** A command that takes rules away, beside a Junction that would write them again at once. */
import { setTimeout as sleep } from 'node:timers/promises';
import { alreadyRunning, findHolder } from '../system/instanceLock.ts';
import type { Output } from './output.ts';

/** One that was told to end may take a moment. */
const WAIT_MS = 10_000;
const RETRY_MS = 200;

/** Throws `ALREADY_RUNNING` while a Junction serves; with `force`, says so and goes on. */
export async function refuseBesideJunction(output: Output, force: boolean): Promise<void> {
  const until = performance.now() + (force ? 0 : WAIT_MS);
  for (let isFirst = true; ; isFirst = false) {
    const holder = await findHolder();
    if (!holder || holder.isImpostor) return;
    if (force) {
      output.err(`warning: a Junction runs here, and writes its rules again: ${holder.text}\n`);
      return;
    }
    if (performance.now() >= until)
      throw alreadyRunning(
        holder.text,
        'Stop it first: it would write again what is removed. Or say --force, to remove all the same.',
      );
    if (isFirst) output.err(`note: waiting for a Junction to end: ${holder.text}\n`);
    await sleep(RETRY_MS);
  }
}
