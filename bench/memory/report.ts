/** The tables of `npm run bench -- memory`. */
import { printColumns } from '../../src/cli/table.ts';
import type { ClusterSizes } from '../sizing/messages.ts';
import { nameOf } from '../sizing/report.ts';
import { mebibytes, ms } from '../spread.ts';
import type { MemoryRun, MemoryTask, ProcessRun } from './messages.ts';

interface Row {
  readonly task: MemoryTask;
  readonly run: MemoryRun;
}

const MEBIBYTE = 1 << 20;
/** Resident when settled; at most so much more at a start. */
const GOALS: Readonly<Record<string, number>> = { '10000 × 3': 110 * MEBIBYTE, '30000 × 10': 280 * MEBIBYTE };
const PEAK_FACTOR = 1.3;
/** From `V8 USED` on, what V8 says of the main thread. */
const PART_COLUMNS =
  'MODE,SERVICES,RUN,FILES,MALLOC,CODE,STACKS,OTHERS,V8 USED,TOTAL,YOUNG,CODE,EXTERNAL'.split(',');
const LONGEST_NAME = 110;

export function printMemory(rows: readonly Row[]): string {
  return [
    printColumns(
      ['MODE', 'SERVICES', 'RUN', 'FIRST', 'SETTLED', 'GOAL', 'PEAK', 'GOAL', 'SERVED', 'CPU'],
      rows.flatMap(({ task, run }) => [
        [...title(task), 'start', ...resident(run.start, task.sizes)],
        [...title(task), 'restart', ...resident(run.restart, task.sizes)],
      ]),
    ),
    printColumns(
      PART_COLUMNS,
      rows.flatMap(({ task, run }) => [
        [...title(task), 'start', ...parts(run.start)],
        [...title(task), 'restart', ...parts(run.restart)],
      ]),
    ),
    ...rows.filter(({ run }) => run.groups.length > 0).map(printGroups),
  ].join('\n');
}

function printGroups({ task, run }: Row): string {
  const rows = run.groups.map(({ name, count, bytes }) => [
    (bytes / MEBIBYTE).toFixed(2),
    String(count),
    name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME)}…` : name,
  ]);
  return `${title(task).join(', ')}: the heap after a collection\n${printColumns(['MIB', 'OBJECTS', 'WHAT'], rows)}`;
}

function title({ mode, sizes }: MemoryTask): readonly string[] {
  return [mode, nameOf(sizes)];
}

function resident(
  { first, settled, peak, ms: time, cpuMs }: ProcessRun,
  sizes: ClusterSizes,
): readonly string[] {
  const goal = GOALS[nameOf(sizes)];
  return [
    mebibytes(first),
    mebibytes(settled),
    goal === undefined ? '' : mebibytes(goal),
    mebibytes(peak),
    goal === undefined ? '' : mebibytes(goal * PEAK_FACTOR),
    ms(time),
    ms(cpuMs),
  ];
}

function parts({ mappings, heap }: ProcessRun): readonly string[] {
  const { files, malloc, code, stacks, others } = mappings;
  const { used, total, young, code: codeSpace, external } = heap;
  return [files, malloc, code, stacks, others, used, total, young, codeSpace, external].map(mebibytes);
}
