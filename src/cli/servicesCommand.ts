/** `junction services`: what is served here, and what is not. */
import { flagValue, type ParsedFlags } from '../config/commandLine.ts';
import { SERVICE_COLUMNS, serviceCells } from '../explain/serviceTable.ts';
import type { ServiceRow } from '../explain/types.ts';
import { showAnswer, type Viewer } from './answerOutput.ts';
import { openAnswers } from './answers.ts';
import { matcherOf } from '../text/matcher.ts';
import type { Output } from './output.ts';
import { OWN_FLAGS } from './ownFlags.ts';
import { cellOf, type Column, tableLines } from './table.ts';

export async function servicesCommand(parsed: ParsedFlags, output: Output): Promise<number> {
  const namespace = flagValue(parsed, OWN_FLAGS.namespace);
  const onlyProblems = flagValue(parsed, OWN_FLAGS.problems);
  const matches = matcherOf(parsed.arguments[0]);
  const answers = await openAnswers(parsed, output);
  return showAnswer(parsed, output, async () => {
    const all = await answers.services(namespace);
    const rows = all
      .filter(({ service, state }) => matches(service) && !(onlyProblems && state === 'ok'))
      .sort((a, b) => (a.service < b.service ? -1 : 1));
    return { answer: rows, text: (viewer) => printRows(rows, all.length, viewer), exitCode: 0 };
  });
}

interface ServiceColumn extends Omit<Column, 'title'> {
  /** Shown where a row has something in it, and with `wide`. */
  readonly isOptional?: true;
  /** Shown with `wide`. */
  readonly isWide?: true;
}

const DETAILS: Readonly<Record<(typeof SERVICE_COLUMNS)[number], ServiceColumn>> = {
  SERVICE: { least: 24 },
  TYPE: {},
  'CLUSTER IP': { least: 15 },
  'OTHER IPS': { least: 12, isOptional: true },
  PORTS: { least: 12 },
  READY: {},
  POLICY: { isOptional: true },
  AFFINITY: { isWide: true },
  STATE: { least: 12 },
};

function printRows(rows: readonly ServiceRow[], all: number, viewer: Viewer): Iterable<string> {
  if (all === 0) return ['No services.\n'];
  if (rows.length === 0) return [`None of ${all} services.\n`];
  const { columns, isWide, paint } = viewer;
  const cells = rows.map((row) => serviceCells(row).map((cell) => cellOf(cell)));
  const shown = SERVICE_COLUMNS.flatMap((title, index) => {
    const { isOptional, isWide: whenWide, least } = DETAILS[title];
    const isHidden = whenWide || (isOptional && cells.every((row) => row[index] === ''));
    return isHidden && !isWide ? [] : [{ title, index, ...(least !== undefined && { least }) }];
  });
  const shownCells = cells.map((row) => shown.map(({ index }) => row[index] ?? ''));
  return tableLines(shown, shownCells, columns, (cell) => paint(colourOf(cell), cell));
}

function colourOf(state: string): 'green' | 'red' | 'yellow' {
  if (state === 'ok') return 'green';
  return state.startsWith('refused') ? 'red' : 'yellow';
}
