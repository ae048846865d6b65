/** `junction check`: whether this machine has what a proxy mode needs, and whether manifests can be used. */
import type { ValidConfig } from '../config/effective.ts';
import { checkMode } from '../modes/prerequisites.ts';
import {
  absent,
  type Check,
  type CheckState,
  present,
  readinessOf,
  summary,
} from '../modes/prerequisites/check.ts';
import { type Machine, systemMachine } from '../modes/prerequisites/machine.ts';
import type { Colour } from '../text/paint.ts';
import { printable, printableLine } from '../text/printable.ts';
import { wrap } from '../text/wrap.ts';
import { printSourceProblem } from '../sources/source.ts';
import type { Output, PrintOptions } from './output.ts';
import { readManifests } from './planInput.ts';
import { fitsIn, painter, printDetailedTable, printColumns } from './table.ts';

/** Returns the exit code: 0 if all that the mode needs is known to be there. */
export async function checkCommand(
  config: ValidConfig,
  output: Output,
  options: PrintOptions,
  machine: Machine = systemMachine(config.junction),
): Promise<number> {
  const { mode } = config;
  const checks = [
    ...(await checkManifests(config, output)),
    ...(await checkMode(config, options.families, machine)),
  ];
  if (options.output === 'json') output.out(printJson(mode, checks));
  else output.painted(printText(mode, checks, options.columns));
  return readinessOf(checks) === 'yes' ? 0 : 1;
}

/** One row; each problem besides, with its place, where `plan` writes it. */
async function checkManifests(config: ValidConfig, output: Output): Promise<readonly Check[]> {
  const paths = config.junction.manifests ?? [];
  if (paths.length === 0) return [];
  const { services, slices, nodes, problems } = await readManifests(config, output);
  for (const problem of problems) output.err(`${printSourceProblem(problem)}\n`);
  const errors = problems.filter(({ severity }) => severity === 'error').length;
  const counts = [
    countOf(services.length, 'Service'),
    countOf(slices.length, 'EndpointSlice'),
    countOf(nodes.length, 'Node'),
    ...(errors > 0 ? [countOf(errors, 'error')] : []),
    ...(problems.length > errors ? [countOf(problems.length - errors, 'warning')] : []),
  ].join(', ');
  const subject = `manifests ${paths.join(', ')}`;
  if (errors === 0) return [present(subject, 'always', counts)];
  return [absent(subject, 'always', counts, 'Correct what the messages on standard error name.')];
}

function countOf(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}

/** The names of these fields stay as they are: scripts read them. */
function printJson(mode: string, checks: readonly Check[]): string {
  const verdict = readinessOf(checks);
  return `${JSON.stringify({ mode, canRun: verdict === 'yes', verdict, summary: summary(mode, checks), checks }, null, 2)}\n`;
}

const COLOURS: Readonly<Record<CheckState, Colour>> = {
  present: 'green',
  missing: 'red',
  degraded: 'yellow',
  unknown: 'yellow',
};
const FOUND_WIDTH = 46;
const REMEDY_WIDTH = 60;

function printText(mode: string, checks: readonly Check[], columns = Number.POSITIVE_INFINITY): string {
  const isFine = checks.every(({ remedy }) => remedy === '');
  const header = ['WHAT', 'STATE', 'FOUND', ...(isFine ? [] : ['WHAT TO DO'])];
  const wide = printColumns(
    header,
    checks.flatMap((check) => checkRows(check, FOUND_WIDTH, FOUND_WIDTH)),
  );
  return `${fitsIn(wide, columns) ? wide : printNarrow(checks, columns)}\n${wrap(printable(summary(mode, checks)), columns).join('\n')}\n`;
}

const STATE_WIDTH = 8;
const GAPS = 4;

/** What to do stands below its row. */
function printNarrow(checks: readonly Check[], columns: number): string {
  const words = checks.flatMap((check) => check.subject.split(' '));
  const subject = Math.max(Math.floor(columns / 3), ...words.map(({ length }) => length));
  const found = columns - subject - STATE_WIDTH - GAPS;
  const rows = checks.map((check) => ({
    lines: checkRows({ ...check, remedy: '' }, subject, found),
    details: printableLine(check.remedy),
  }));
  return printDetailedTable(['WHAT', 'STATE', 'FOUND'], rows, columns);
}

/** One row, and more below it where a text is too long for its column. */
function checkRows(
  { subject, state, needed, found, remedy }: Check,
  subjectWidth: number,
  foundWidth: number,
): readonly (readonly string[])[] {
  const paint = painter(process.stdout);
  const why = state === 'present' || needed === 'always' ? '' : ` (needed ${needed})`;
  const [subjects, founds, remedies] = [
    wrap(printableLine(subject), subjectWidth),
    wrap(printableLine(found + why), foundWidth),
    wrap(printableLine(remedy), REMEDY_WIDTH),
  ];
  const height = Math.max(subjects.length, founds.length, remedies.length);
  return Array.from({ length: height }, (_, line) => [
    subjects[line] ?? '',
    line === 0 ? paint(COLOURS[state], state) : '',
    founds[line] ?? '',
    remedies[line] ?? '',
  ]);
}
