/** `npm run bench -- sizing`: memory and CPU time of a container, by mode and cluster size. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { runInGuest, whyNoGuest } from '../../lab/guest/machine.ts';
import { countsOption, numberOption, option, progress, refuseUnknown } from '../arguments.ts';
import { openNamespace } from '../namespace.ts';
import type { SizingRun, SizingTask } from './messages.ts';
import { modesOf, nodeOptions, sizesOf } from './options.ts';
import { nameOf, printSizing } from './report.ts';

const PROGRAM = fileURLToPath(new URL('bench-sizing-run.js', import.meta.url));
const SERVER = fileURLToPath(new URL('bench-sizing-server.js', import.meta.url));
const LIMIT_MS = 1_200_000;
const MEBIBYTE = 1 << 20;
const OPTIONS = [
  '--modes',
  '--sizes',
  '--limit',
  '--rates',
  '--seconds',
  '--settle',
  '--semi-space',
  '--old-space',
];

export async function sizingCommand(args: readonly string[]): Promise<void> {
  refuseUnknown(args, OPTIONS, ['--json', '--guest']);
  if (!existsSync(SERVER))
    throw new Error('this benchmark needs a whole checkout: its API server is with the tests');
  const limit = numberOption(args, '--limit', 0) * MEBIBYTE;
  const common = {
    limit: limit === 0 ? undefined : limit,
    rates: countsOption(args, '--rates', '1,10,100'),
    churnSeconds: numberOption(args, '--seconds', 10),
    settleSeconds: numberOption(args, '--settle', 10),
    nodeOptions: nodeOptions(args),
  };
  const modes = modesOf(option(args, '--modes', 'nftables,iptables-nft,iptables-legacy'));
  const sizes = sizesOf(option(args, '--sizes', '100x3,1000x3,5000x3,10000x3,10000x3d,30000x10'));
  const rows: { readonly task: SizingTask; readonly run: SizingRun }[] = [];
  for (const mode of modes)
    for (const each of sizes) {
      progress(`${mode}: ${nameOf(each)}`);
      const task: SizingTask = { ...common, mode, sizes: each };
      const isInGuest = mode === 'ipvs' || args.includes('--guest');
      const run = await (isInGuest ? inGuest(task) : inNamespace(task));
      if (args.includes('--json')) process.stdout.write(`${JSON.stringify({ task, run })}\n`);
      rows.push({ task, run });
    }
  progress('');
  process.stdout.write(printSizing(rows));
}

async function inNamespace(task: SizingTask): Promise<SizingRun> {
  const namespace = await openNamespace();
  try {
    const command = [process.execPath, PROGRAM, JSON.stringify(task)] as const;
    return parse(await namespace.runner(command, { timeoutMs: LIMIT_MS }));
  } finally {
    namespace.close();
  }
}

/** Its kernel has IPVS; every system call takes longer there. */
async function inGuest(task: SizingTask): Promise<SizingRun> {
  const reason = whyNoGuest(['ip', 'iptables-legacy-restore', 'ipvsadm', 'dd']);
  if (reason !== undefined) throw new Error(reason);
  const modules = ['ip_vs', 'ip_vs_rr', 'dummy'];
  return parse(
    await runInGuest(PROGRAM, { timeoutMs: LIMIT_MS, modules, arguments: [JSON.stringify(task)] }),
  );
}

function parse(result: {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}): SizingRun {
  if (result.code !== 0)
    throw new Error(`the benchmark's program ended with ${result.code}\n${result.stderr}`);
  return JSON.parse(result.stdout) as SizingRun;
}
