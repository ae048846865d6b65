/**
 * Preloaded into the daemon that is measured: at SIGUSR2 it writes what V8 says of the heap, and where it was asked to, a
 * snapshot. Everything else is read from outside.
 */
import { renameSync, writeFileSync } from 'node:fs';
import { getHeapSpaceStatistics, writeHeapSnapshot } from 'node:v8';
import { isMainThread } from 'node:worker_threads';
import type { HeapNumbers } from './messages.ts';

const folder = process.env['JUNCTION_BENCH_PROBE'];
if (isMainThread && folder !== undefined && process.argv.includes('run'))
  process.on('SIGUSR2', () => {
    writeFileSync(`${folder}/heap.new`, JSON.stringify(heapNumbers()));
    if (process.env['JUNCTION_BENCH_SNAPSHOT'] === '1') writeHeapSnapshot(`${folder}/heap.heapsnapshot`);
    renameSync(`${folder}/heap.new`, `${folder}/heap.json`);
  });

function heapNumbers(): HeapNumbers {
  const { heapUsed: used, heapTotal: total, external } = process.memoryUsage();
  const physical = (name: string): number =>
    getHeapSpaceStatistics().find(({ space_name: each }) => each === name)?.physical_space_size ?? 0;
  return { used, total, external, young: physical('new_space'), code: physical('code_space') };
}
