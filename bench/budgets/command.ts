/** `npm run bench -- budgets`: whole daemons from outside, this checkout's and another one's in turns. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { BadArgument, numberOption, option, progress, refuseUnknown } from '../arguments.ts';
import { openNamespace } from '../namespace.ts';
import { type Checkout, openBaseline, thisCheckout } from './baseline.ts';
import {
  BUDGET_MODES,
  type BudgetRun,
  type BudgetTask,
  type Cluster,
  type Measured,
  type StartRun,
  type StartTask,
} from './messages.ts';
import { printBudgets } from './report.ts';

const RUN = fileURLToPath(new URL('bench-budgets-run.js', import.meta.url));
const START = fileURLToPath(new URL('bench-budgets-start.js', import.meta.url));
const API = fileURLToPath(new URL('bench-nftables-api.js', import.meta.url));
const LIMIT_MS = 3_600_000;
const CLUSTERS = 'iptables-nft:300x3,iptables-nft:10000x3,nftables:10000x3,nftables:30000x10';
const CONTENT_TYPES = { json: 'application/json', protobuf: 'application/vnd.kubernetes.protobuf' } as const;

const OPTIONS = [
  '--baseline',
  '--clusters',
  '--repetitions',
  '--changes',
  '--settle',
  '--starts',
  '--content-types',
  '--node-options',
  '--log',
];

export async function budgetsCommand(args: readonly string[]): Promise<void> {
  refuseUnknown(args, OPTIONS, ['--json']);
  const clusters = parseClusters(option(args, '--clusters', CLUSTERS));
  const contentTypes = parseContentTypes(option(args, '--content-types', 'json,protobuf'));
  const repetitions = numberOption(args, '--repetitions', 1);
  const starts = numberOption(args, '--starts', 9);
  const shared = {
    changes: numberOption(args, '--changes', 20),
    settleMs: numberOption(args, '--settle', 10) * 1000,
    nodeOptions: option(args, '--node-options', '--max-semi-space-size=2'),
    logFile: option(args, '--log', '') && resolve(option(args, '--log', '')),
  };
  if (!existsSync(API))
    throw new Error('this benchmark needs a whole checkout: its API server is with the tests');
  const baseline = option(args, '--baseline', '');
  const checkouts = [...(baseline === '' ? [] : [openBaseline(baseline)]), thisCheckout()];
  try {
    const start = await measureStarts(checkouts, starts);
    const measured: Measured[] = [];
    for (const cluster of clusters)
      measured.push(...(await measureCluster(cluster, checkouts, contentTypes, repetitions, shared)));
    progress('');
    const names = checkouts.map(({ name }) => name);
    process.stdout.write(
      args.includes('--json')
        ? `${JSON.stringify({ names, start, measured })}\n`
        : printBudgets({ names, start, measured }),
    );
  } finally {
    for (const each of checkouts) each.close();
  }
}

async function measureStarts(checkouts: readonly Checkout[], repetitions: number): Promise<StartRun> {
  if (repetitions === 0) return [];
  progress('the program itself');
  const task: StartTask = { programs: checkouts.map(({ program }) => program), repetitions };
  return (await inNamespace(START, task)) as StartRun;
}

/** In turns, so that what else the machine does is shared fairly. */
async function measureCluster(
  cluster: Cluster,
  checkouts: readonly Checkout[],
  contentTypes: readonly string[],
  repetitions: number,
  shared: Pick<BudgetTask, 'changes' | 'settleMs' | 'nodeOptions' | 'logFile'>,
): Promise<readonly Measured[]> {
  const all = checkouts.flatMap(({ name, program }, checkout) =>
    // A baseline has what it always had; whether it can do more is not its number.
    contentTypes
      .filter((_, index) => index === 0 || name === 'now')
      .map((contentType) => ({ name, program, checkout, contentType, runs: [] as BudgetRun[] })),
  );
  for (let repetition = 1; repetition <= repetitions; repetition++)
    for (const { name, program, contentType, runs } of all) {
      const { mode, sizes } = cluster;
      progress(
        `${repetition} of ${repetitions}: ${mode}, ${sizes.services} × ${sizes.endpoints}, ${name}, ${contentType}`,
      );
      const task: BudgetTask = { ...cluster, ...shared, program, contentType };
      runs.push((await inNamespace(RUN, task)) as BudgetRun);
    }
  return all.map(({ checkout, contentType, runs }) => ({ cluster, contentType, checkout, runs }));
}

async function inNamespace(program: string, task: BudgetTask | StartTask): Promise<unknown> {
  const namespace = await openNamespace();
  try {
    const argv = [process.execPath, program, JSON.stringify(task)] as const;
    const { code, stdout, stderr } = await namespace.runner(argv, { timeoutMs: LIMIT_MS });
    if (code !== 0) throw new Error(`the benchmark's program ended with ${code}\n${stderr}`);
    return JSON.parse(stdout);
  } finally {
    namespace.close();
  }
}

function parseClusters(text: string): readonly Cluster[] {
  if (text === 'none') return [];
  return text.split(',').map((each) => {
    const [, name, services, endpoints] = /^([a-z-]+):(\d+)x(\d+)$/.exec(each) ?? [];
    const mode = BUDGET_MODES.find((known) => known === name);
    if (mode !== undefined && Number(services) > 0)
      return { mode, sizes: { services: Number(services), endpoints: Number(endpoints) } };
    throw new BadArgument(
      `--clusters ${each}: expected MODE:SERVICESxENDPOINTS with ${BUDGET_MODES.join(' or ')}, or none`,
    );
  });
}

function parseContentTypes(text: string): readonly string[] {
  return text.split(',').map((each) => {
    if (each === 'json' || each === 'protobuf') return CONTENT_TYPES[each];
    throw new BadArgument(`--content-types ${each}: expected json, protobuf or both`);
  });
}
