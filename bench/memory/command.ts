/** `npm run bench -- memory`: what is resident, and what of the heap holds it. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { BadArgument, numberOption, option, progress, refuseUnknown } from '../arguments.ts';
import { openNamespace } from '../namespace.ts';
import { modesOf, nodeOptions, sizesOf } from '../sizing/options.ts';
import { nameOf } from '../sizing/report.ts';
import type { MemoryRun, MemoryTask } from './messages.ts';
import { printMemory } from './report.ts';

const PROGRAM = fileURLToPath(new URL('bench-memory-run.js', import.meta.url));
const SERVER = fileURLToPath(new URL('bench-api-server.js', import.meta.url));
const LIMIT_MS = 1_200_000;
const OPTIONS = ['--modes', '--sizes', '--settle', '--semi-space', '--old-space', '--groups', '--dist'];

export async function memoryCommand(args: readonly string[]): Promise<void> {
  refuseUnknown(args, OPTIONS, ['--json']);
  if (!existsSync(SERVER))
    throw new Error('this benchmark needs a whole checkout: its API server is with the tests');
  const dist = resolve(option(args, '--dist', fileURLToPath(new URL('.', import.meta.url))));
  const program = `${dist}/junction.js`;
  if (!existsSync(program)) throw new BadArgument(`--dist ${dist}: expected a folder with junction.js`);
  const common = {
    program,
    settleSeconds: numberOption(args, '--settle', 10),
    nodeOptions: nodeOptions(args),
    groups: numberOption(args, '--groups', 25),
  };
  const rows: { readonly task: MemoryTask; readonly run: MemoryRun }[] = [];
  for (const mode of modesOf(option(args, '--modes', 'nftables,iptables-nft')))
    for (const sizes of sizesOf(option(args, '--sizes', '10000x3,30000x10'))) {
      progress(`${mode}: ${nameOf(sizes)}`);
      const task: MemoryTask = { ...common, mode, sizes };
      const run = await inNamespace(task);
      if (args.includes('--json')) process.stdout.write(`${JSON.stringify({ task, run })}\n`);
      rows.push({ task, run });
    }
  progress('');
  process.stdout.write(printMemory(rows));
}

async function inNamespace(task: MemoryTask): Promise<MemoryRun> {
  const namespace = await openNamespace();
  try {
    const command = [process.execPath, PROGRAM, JSON.stringify(task)] as const;
    const { code, stdout, stderr } = await namespace.runner(command, { timeoutMs: LIMIT_MS });
    if (code !== 0) throw new Error(`the benchmark's program ended with ${code}\n${stderr}`);
    return JSON.parse(stdout) as MemoryRun;
  } finally {
    namespace.close();
  }
}
