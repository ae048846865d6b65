/** `npm run bench -- ui`: what the page costs the one who looks at it, and the proxy. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { printColumns } from '../../src/cli/table.ts';
import { choiceOption, numberOption, progress, refuseUnknown } from '../arguments.ts';
import { openNamespace } from '../namespace.ts';
import { mebibytes, median, ms, spread } from '../spread.ts';
import type { UiRun, UiTask } from './messages.ts';

const PROGRAM = fileURLToPath(new URL('bench-ui-run.js', import.meta.url));
const LIMIT_MS = 1_800_000;

export async function uiCommand(args: readonly string[]): Promise<void> {
  refuseUnknown(args, ['--services', '--endpoints', '--tabs', '--changes', '--repetitions', '--output']);
  if (!existsSync(PROGRAM))
    throw new Error('this benchmark needs a whole checkout: its browser is with the tests');
  const task: UiTask = {
    sizes: {
      services: numberOption(args, '--services', 30_000),
      endpoints: numberOption(args, '--endpoints', 10),
    },
    tabs: numberOption(args, '--tabs', 20),
    changes: numberOption(args, '--changes', 20),
    repetitions: numberOption(args, '--repetitions', 5),
  };
  const output = choiceOption(args, '--output', ['table', 'json']);
  const namespace = await openNamespace();
  try {
    progress(`${task.sizes.services} services with ${task.sizes.endpoints} endpoints each, nftables mode`);
    const { code, stdout, stderr } = await namespace.runner(
      [process.execPath, PROGRAM, JSON.stringify(task)],
      { timeoutMs: LIMIT_MS },
    );
    if (code !== 0) throw new Error(`the benchmark's program ended with ${code}\n${stderr}`);
    progress('');
    const run = JSON.parse(stdout) as UiRun;
    process.stdout.write(output === 'json' ? `${JSON.stringify({ task, run })}\n` : report(task, run));
  } finally {
    namespace.close();
  }
}

function report({ sizes, tabs }: UiTask, run: UiRun): string {
  const { table } = run;
  const title = `${sizes.services} services × ${sizes.endpoints} endpoints, nftables mode; the proxy has ${mebibytes(run.resident)} resident\n\n`;
  const { keyMs } = table.typing;
  const browser = printColumns(
    ['IN THE BROWSER', 'MEASURED', 'LIMIT'],
    [
      ['rows on the screen after the answer', spread(table.paintMs, ms), '1.00 s'],
      ['rows on the screen after opening', spread(table.openMs, ms), '–'],
      [
        'a key in search, to the screen',
        `p50 ${ms(quantile(keyMs, 0.5))}, p95 ${ms(quantile(keyMs, 0.95))}, max ${ms(quantile(keyMs, 1))}`,
        '50.0 ms',
      ],
      ['longest task while typing, processor time', ms(table.typing.longestTaskMs), '50.0 ms'],
      ['longest task while scrolling, processor time', ms(table.scrolling.longestTaskMs), '–'],
      ['frames while scrolling', `${table.scrolling.dropped} of ${table.scrolling.frames} dropped`, '0'],
      [
        'the same of a plain document',
        `${table.plainScrolling.dropped} of ${table.plainScrolling.frames} dropped`,
        '–',
      ],
      [
        'memory of the tab',
        `${mebibytes(table.memory.tab)}, of it ${mebibytes(table.memory.heap)} heap`,
        '200 MB',
      ],
      ['files of the page, compressed', `${(run.files / 1000).toFixed(1)} kB`, '150 kB'],
    ],
  );
  const views = printColumns(
    ['VIEW', 'ASKS FOR', 'ANSWER', 'TIME'],
    run.views.map(({ view, path, bytes, ms: each }) => [
      view,
      path,
      `${(bytes / 1000).toFixed(1)} kB`,
      spread(each, ms),
    ]),
  );
  const total = { alone: totals(run.syncs.alone), tabs: totals(run.syncs.withTabs) };
  const own = { alone: ofProxy(run.syncs.alone), tabs: ofProxy(run.syncs.withTabs) };
  const syncs = printColumns(
    ['ONE CHANGE', 'API SERVER TO KERNEL', 'SEEN TO KERNEL'],
    [
      ['without tabs', spread(total.alone, ms), spread(own.alone, ms)],
      [`with ${tabs} tabs open`, spread(total.tabs, ms), spread(own.tabs, ms)],
      [
        'difference of the middle ones',
        ms(Math.max(0, median(total.tabs) - median(total.alone))),
        ms(Math.max(0, median(own.tabs) - median(own.alone))),
      ],
    ],
  );
  return `${title}${browser}\n${views}\n${syncs}\nThe tabs asked ${run.asked} questions.\n`;
}

function totals(changes: UiRun['syncs']['alone']): readonly number[] {
  return changes.map(({ totalMs }) => totalMs);
}

function ofProxy(changes: UiRun['syncs']['alone']): readonly number[] {
  return changes.map(({ syncMs }) => syncMs);
}

/** `values` from the least to the greatest. */
function quantile(values: readonly number[], share: number): number {
  return values[Math.min(values.length - 1, Math.floor(values.length * share))] ?? Number.NaN;
}
