/** Workers that stand in for the real one: they need no kernel, and fail as they are told. */
import type { WorkerProgram } from '../../../src/netlink/workerHandle.ts';

/** What a job's protocol makes the worker do. */
export const ANSWER = 0;
export const CRASH = 1;
export const FAIL = 2;
export const KEEP_SILENT = 3;
export const ANSWER_NOISE = 4;
/** Who watches this hears noise three times, and then a message. */
export const HEAR_NOISE = 5;
/** Who watches this is told by the kernel that messages were lost. */
export const HEAR_OVERRUN = 6;

const PROGRAM = `
  const { readSync } = require('node:fs');
  const { parentPort, workerData } = require('node:worker_threads');
  const acknowledgement = (sequence, type = 2) => {
    const bytes = new Uint8Array(36);
    const view = new DataView(bytes.buffer);
    view.setUint32(0, 36, true);
    view.setUint16(4, type, true);
    view.setUint32(8, sequence, true);
    return bytes;
  };
  let jobs = 0;
  parentPort.on('message', (job) => {
    const { id, kind, protocol, exchanges } = job;
    jobs += 1;
    if (protocol === ${CRASH}) throw new Error('an accident');
    if (protocol === ${FAIL})
      return parentPort.postMessage({ kind: 'failed', id, code: 'NETLINK_TIMED_OUT', message: 'job ' + jobs });
    if (protocol === ${KEEP_SILENT} && kind === 'exchange') return;
    if (protocol === ${ANSWER_NOISE}) parentPort.postMessage({ kind: 'part', id, bytes: Uint8Array.of(1, 2, 3) });
    else for (const { last } of exchanges ?? [])
      parentPort.postMessage({ kind: 'part', id, bytes: acknowledgement(last) });
    if (protocol === ${HEAR_NOISE}) for (let round = 0; round < 3; round++)
      parentPort.postMessage({ kind: 'notified', watch: job.watch, bytes: Uint8Array.of(1, 2, 3) });
    if (protocol === ${HEAR_OVERRUN})
      parentPort.postMessage({ kind: 'notified', watch: job.watch, bytes: acknowledgement(0, 4) });
    if (kind === 'watch') parentPort.postMessage({ kind: 'notified', watch: job.watch, bytes: acknowledgement(0) });
    parentPort.postMessage({ kind: 'done', id });
  });
  setInterval(() => {
    try {
      readSync(workerData.stop, new Uint8Array(8));
      process.exit();
    } catch {}
  }, 5);
`;

const READY = `parentPort.postMessage({ kind: 'ready' });`;

export const OBEDIENT: WorkerProgram = PROGRAM + READY;
export const NEVER_STARTS: WorkerProgram = `throw new Error('no such luck');`;
/** Hears neither its jobs nor that it shall end. */
export const DEAF: WorkerProgram = `const { parentPort } = require('node:worker_threads'); ${READY} setInterval(() => {}, 1000);`;
