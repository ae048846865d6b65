/** One mode and one cluster in the network namespace of this process: a start, and a restart on its rules. */
import { execFileSync, fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { FromServer, Listening, ServerOptions } from '../api/messages.ts';
import { writeFiles } from '../sizing/container.ts';
import { summarizeHeap } from './heapSnapshot.ts';
import { measureDaemon } from './measuredDaemon.ts';
import type { MemoryRun, MemoryTask } from './messages.ts';

const SERVER = fileURLToPath(new URL('bench-api-server.js', import.meta.url));
const CERTIFICATES = fileURLToPath(new URL('../test/support/apiServer/certs', import.meta.url));

async function main(task: MemoryTask): Promise<MemoryRun> {
  const folder = mkdtempSync(join(tmpdir(), 'junction-bench-'));
  execFileSync('ip', ['link', 'set', 'lo', 'up']);
  const options: ServerOptions = { ...task.sizes, streamsLists: true, certificates: CERTIFICATES };
  const server = fork(SERVER, [JSON.stringify(options)], { execArgv: [] });
  try {
    const { port } = await new Promise<Listening>((resolve, reject) => {
      server.once('exit', () => reject(new Error('the API server has ended')));
      server.on('message', (message: FromServer) => {
        if (message.kind === 'listening') resolve(message);
      });
    });
    const files = writeFiles(folder, port, `${CERTIFICATES}/ca.crt`);
    const start = await measureDaemon(task, files, task.groups > 0);
    const groups = task.groups > 0 ? await summarizeHeap(join(folder, 'heap.heapsnapshot'), task.groups) : [];
    return { start, restart: await measureDaemon(task, files, false), groups };
  } finally {
    if (server.connected) server.disconnect();
    rmSync(folder, { recursive: true });
  }
}

const task = JSON.parse(process.argv[2] ?? '{}') as MemoryTask;
process.stdout.write(`${JSON.stringify(await main(task))}\n`);
process.exit();
