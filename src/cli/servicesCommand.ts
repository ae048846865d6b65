/** `junction services`: what is served here, and what is not. */
import { flagValue, type ParsedFlags } from '../config/commandLine.ts';
import { SERVICE_COLUMNS } from '../explain/serviceTable.ts';
import { type Shown, showAnswer, type Viewer } from './answerOutput.ts';
import { type Answerer, openAnswers } from './answers.ts';
import { alignTable, type ByteTable, type ShownColumn, tableOfLines } from './byteTable.ts';
import { matcherOf } from '../text/matcher.ts';
import type { Output } from './output.ts';
import { OWN_FLAGS } from './ownFlags.ts';
import { cellOf, type Column, tableLines } from './table.ts';

export async function servicesCommand(parsed: ParsedFlags, output: Output): Promise<number> {
  const format = flagValue(parsed, OWN_FLAGS.answerOutput);
  const answers = await openAnswers(parsed, output);
  const ask = format === 'json' || format === 'yaml' ? rowsShown : tableShown;
  return showAnswer(parsed, output, () => ask(answers, parsed));
}

/** For programs. */
async function rowsShown(answers: Answerer, parsed: ParsedFlags): Promise<Shown> {
  const isAsked = filterOf(parsed);
  const all = await answers.services(flagValue(parsed, OWN_FLAGS.namespace));
  const answer = all
    .filter(({ service, state }) => isAsked?.(service, state) ?? true)
    .sort((a, b) => (a.service < b.service ? -1 : 1));
  return { answer, text: () => [], exitCode: 0 };
}

/** For people: thirty thousand rows in less time than their JSON takes to be read. */
async function tableShown(answers: Answerer, parsed: ParsedFlags): Promise<Shown> {
  const table = await answers.serviceTable(flagValue(parsed, OWN_FLAGS.namespace));
  return { answer: undefined, text: (viewer) => printTable(table, filterOf(parsed), viewer), exitCode: 0 };
}

type Filter = (service: string, state: string) => boolean;

function filterOf(parsed: ParsedFlags): Filter | undefined {
  const onlyProblems = flagValue(parsed, OWN_FLAGS.problems);
  const [pattern] = parsed.arguments;
  if (pattern === undefined && !onlyProblems) return undefined;
  const matches = matcherOf(pattern);
  return (service, state) => matches(service) && !(onlyProblems && state === 'ok');
}

/** As it is, where that is possible. */
function printTable(
  table: ByteTable,
  isAsked: Filter | undefined,
  viewer: Viewer,
): Iterable<string | Buffer> {
  if (table.rows === 0) return ['No services.\n'];
  if (table.isPlain && !isAsked) return [printAligned(table, viewer)];
  const all = Buffer.from(table.bytes).toString('utf8').split('\n').slice(0, -1);
  const lines = all.filter((line) => isAsked?.(...endsOf(line)) ?? true).map((line) => cellOf(line, '\t'));
  if (lines.length === 0) return [`None of ${all.length} services.\n`];
  const filtered = tableOfLines(lines, SERVICE_COLUMNS.length);
  return filtered.isPlain ? [printAligned(filtered, viewer)] : printLines(lines, viewer);
}

/** The first cell and the last. */
function endsOf(line: string): [service: string, state: string] {
  return [line.slice(0, line.indexOf('\t')), line.slice(line.lastIndexOf('\t') + 1)];
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
  'CONN/S': { isOptional: true },
  STATE: { least: 12 },
};

function shownColumns(isWide: boolean, isEmpty: (column: number) => boolean): readonly ShownColumn[] {
  return SERVICE_COLUMNS.map((title, index) => {
    const { isOptional, isWide: whenWide, least } = DETAILS[title];
    if (!isWide && (whenWide || (isOptional && isEmpty(index)))) return undefined;
    return { title, ...(least !== undefined && { least }) };
  });
}

function printAligned(table: ByteTable, { columns, isWide, paint }: Viewer): Buffer {
  const shown = shownColumns(isWide, (column) => table.widths[column] === 0);
  const around = (state: string): readonly [string, string] => {
    const [before = '', after = ''] = paint(colourOf(state), '\n').split('\n');
    return [before, after];
  };
  // By the first letter: ok, refused, or another.
  const [ok, refused, other] = [around('ok'), around('refused'), around('no endpoints')];
  const painted = (first: number): readonly [string, string] =>
    first === O ? ok : first === R ? refused : other;
  return alignTable(table, shown, columns, ok[0] === '' ? undefined : painted);
}

const O = 'o'.charCodeAt(0);
const R = 'r'.charCodeAt(0);

function printLines(lines: readonly string[], { columns, isWide, paint }: Viewer): Iterable<string> {
  const rows = lines.map((line) => line.split('\t'));
  const shown = shownColumns(isWide, (column) => rows.every((row) => row[column] === ''));
  const kept = shown.flatMap((column, index) => (column ? [{ ...column, index }] : []));
  const cells = rows.map((row) => kept.map(({ index }) => row[index] ?? ''));
  return tableLines(kept, cells, columns, (cell) => paint(colourOf(cell), cell));
}

function colourOf(state: string): 'green' | 'red' | 'yellow' {
  if (state === 'ok') return 'green';
  return state.startsWith('refused') ? 'red' : 'yellow';
}
