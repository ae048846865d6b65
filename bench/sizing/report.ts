/** The tables of `npm run bench -- sizing`. */
import { printColumns } from '../../src/cli/table.ts';
import { mebibytes } from '../spread.ts';
import { type ClusterSizes, type SizingRun, type SizingTask, type StepName, STEPS } from './messages.ts';

interface Row {
  readonly task: SizingTask;
  readonly run: SizingRun;
}

const NONE = '–';

export function printSizing(rows: readonly Row[]): string {
  const isLimited = rows.some(({ task }) => task.limit !== undefined);
  return [
    printColumns(
      [
        'MODE',
        'SERVICES',
        ...(isLimited ? ['LIMIT'] : []),
        ...STEPS.map((name) => name.toUpperCase()),
        ...(isLimited ? ['KILLED'] : []),
      ],
      rows.map(({ task, run }) => [
        ...title(task),
        ...(isLimited ? [task.limit === undefined ? NONE : mebibytes(task.limit)] : []),
        ...STEPS.map((name) => peakOf(run, name)),
        ...(isLimited ? [killsOf(run)] : []),
      ]),
    ),
    printColumns(
      [
        'MODE',
        'SERVICES',
        'RESIDENT',
        'CHARGED',
        'PAGE CACHE',
        'KERNEL',
        'LATER: RESIDENT',
        'CHARGED',
        'KERNEL WITHOUT A PROCESS',
        'RESTARTED: RESIDENT',
        'CHARGED',
      ],
      rows.map(({ task, run }) => [...title(task), ...memoryCells(run)]),
    ),
    printColumns(
      [
        'MODE',
        'SERVICES',
        'START',
        'ITS CPU',
        'RESTART',
        'ITS CPU',
        'IDLE',
        ...ratesOf(rows).map((rate) => `${rate}/s`),
        'LOG: START',
        'LATER',
      ],
      rows.map(({ task, run }) => [...title(task), ...cpuCells(run, ratesOf(rows))]),
    ),
  ].join('\n');
}

export function nameOf({ services, endpoints, isDualStack }: ClusterSizes): string {
  return `${services} × ${endpoints}${isDualStack ? ' dual-stack' : ''}`;
}

function title({ mode, sizes }: SizingTask): readonly string[] {
  return [mode, nameOf(sizes)];
}

function ratesOf(rows: readonly Row[]): readonly number[] {
  return rows[0]?.task.rates ?? [];
}

function stepOf(run: SizingRun, name: StepName): SizingRun['steps'][number] | undefined {
  return run.steps.find((step) => step.name === name);
}

function peakOf(run: SizingRun, name: StepName): string {
  const step = stepOf(run, name);
  return step === undefined ? NONE : mebibytes(step.peak);
}

function killsOf({ endedIn, killedCommands }: SizingRun): string {
  if (endedIn !== undefined) return `${endedIn.step}: ${endedIn.how}`;
  return killedCommands.length === 0 ? 'no' : killedCommands.map((name) => `the command ${name}`).join(', ');
}

function memoryCells(run: SizingRun): readonly string[] {
  const [start, later, restart] = (['start', 'repair', 'restart'] as const).map(
    (name) => stepOf(run, name)?.settled,
  );
  const cell = (value: number | undefined): string => (value === undefined ? NONE : mebibytes(value));
  return [
    ...[start?.resident, start?.charged, start?.pageCache, start?.kernel].map(cell),
    ...[later?.resident, later?.charged, run.kernelAfterEnd].map(cell),
    ...[restart?.resident, restart?.charged].map(cell),
  ];
}

function cpuCells(run: SizingRun, rates: readonly number[]): readonly string[] {
  const seconds = (ms: number | undefined): string =>
    ms === undefined ? NONE : `${(ms / 1000).toFixed(1)} s`;
  const percent = (share: number | undefined): string =>
    share === undefined || Number.isNaN(share) ? NONE : `${(share * 100).toFixed(1)} %`;
  const kilobytes = (bytes: number): string => `${(bytes / 1000).toFixed(1)} kB`;
  const [start, restart] = [stepOf(run, 'start'), stepOf(run, 'restart')];
  return [
    ...[start?.ms, start?.cpuMs, restart?.ms, restart?.cpuMs].map(seconds),
    percent(run.idleShare),
    ...rates.map((rate) => percent(run.rates.find((each) => each.rate === rate)?.share)),
    kilobytes(run.logBytes.start),
    kilobytes(run.logBytes.later),
  ];
}
