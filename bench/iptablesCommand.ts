/** `npm run bench -- iptables`: iptables mode at several sizes. Ratios are taken within one run. */
import { fileURLToPath } from 'node:url';
import { printColumns } from '../src/cli/table.ts';
import { choiceOption, countsOption, numberOption, progress, refuseUnknown } from './arguments.ts';
import type { Sizes } from './cluster.ts';
import { type KernelTask, type KernelTimes, type OwnTimes, oneRestoreMs, ownTimes } from './iptables.ts';
import { runInNamespace } from './namespace.ts';

const ENDPOINTS = 3;
const PROGRAM = fileURLToPath(new URL('bench-iptables-node.js', import.meta.url));

interface Row {
  readonly sizes: Sizes;
  readonly own: OwnTimes;
  readonly kernel: KernelTimes;
  readonly oneRestoreMs: number | undefined;
}

export async function iptablesCommand(args: readonly string[]): Promise<void> {
  refuseUnknown(args, ['--sizes', '--variant', '--rewrite-up-to']);
  const counts = countsOption(args, '--sizes', '300,3000,10000');
  const variant = choiceOption(args, '--variant', ['nft', 'legacy']);
  const rewriteUpTo = numberOption(args, '--rewrite-up-to', 3000);
  await ownTimes({ services: 300, endpoints: ENDPOINTS }); // warm up: compare compiled code with compiled code
  const rows: Row[] = [];
  for (const services of counts) {
    const sizes = { services, endpoints: ENDPOINTS };
    progress(`${sizes.services} services: our own part`);
    const own = await ownTimes(sizes);
    if (sizes.services <= rewriteUpTo) progress(`${sizes.services} services: everything in one restore`);
    const oneRestore = sizes.services <= rewriteUpTo ? await oneRestoreMs(sizes, variant) : undefined;
    progress(`${sizes.services} services: iptables-${variant}`);
    const task: KernelTask = { sizes, variant };
    const kernel = (await runInNamespace(PROGRAM, task)) as KernelTimes;
    rows.push({ sizes, own, kernel, oneRestoreMs: oneRestore });
  }
  progress('');
  process.stdout.write(report(rows, variant));
}

function report(rows: readonly Row[], variant: string): string {
  const first = rows[0];
  const cells = rows.map(({ sizes, own, kernel, oneRestoreMs: oneRestore }) => [
    `${sizes.services} × ${sizes.endpoints}`,
    ms(own.coldMs),
    percent(own.coldMs / (kernel.coldMs - own.coldMs)),
    ms(kernel.coldMs),
    oneRestore === undefined ? '–' : ms(oneRestore),
    ms(own.changeMs),
    `${(own.changeMs / (first?.own.changeMs ?? own.changeMs)).toFixed(2)}×`,
    `${own.changeBytes} B`,
    ms(kernel.changeMs),
    ms(kernel.addServiceMs),
    ms(kernel.rewriteMs),
  ]);
  const header = [
    'SERVICES',
    'COLD, OURS',
    'OF RESTORES',
    'COLD, ALL',
    'ONE RESTORE',
    'CHANGE, OURS',
    'GROWTH',
    'TEXT',
    'CHANGE, ALL',
    'ADD SERVICE',
    'REWRITE',
  ];
  return `iptables mode, ${variant} variant, layout current\n\n${printColumns(header, cells)}`;
}

function ms(value: number): string {
  return value >= 1000 ? `${(value / 1000).toFixed(2)} s` : `${value.toFixed(value < 10 ? 3 : 0)} ms`;
}

function percent(value: number): string {
  return `${(value * 100).toFixed(1)} %`;
}
