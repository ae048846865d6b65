/** `junction endpoints NS/NAME`: which endpoints of a Service are used here, and why the others are not. */
import { flagValue, type ParsedFlags } from '../config/commandLine.ts';
import { parseService } from '../explain/question.ts';
import { endpointState, usedFor } from '../explain/serviceWords.ts';
import type { EndpointRow } from '../explain/types.ts';
import { showAnswer, type Viewer } from './answerOutput.ts';
import { openAnswers } from './answers.ts';
import { UsageError } from './commands.ts';
import { OWN_FLAGS } from './ownFlags.ts';
import { serviceName } from './objectNames.ts';
import type { Output } from './output.ts';
import { cellOf, type Column, tableLines } from './table.ts';

export async function endpointsCommand(parsed: ParsedFlags, output: Output): Promise<number> {
  const [name] = parsed.arguments;
  if (name === undefined)
    throw new UsageError(
      ['of which Service? junction endpoints NAMESPACE/NAME'],
      'junction services lists them',
    );
  const { service } = parseService(serviceName(name, flagValue(parsed, OWN_FLAGS.namespace)));
  const answers = await openAnswers(parsed, output);
  return showAnswer(parsed, output, async () => {
    const rows = await answers.endpoints(service);
    return { answer: rows, text: (viewer) => endpointLines(rows, viewer, service), exitCode: 0 };
  });
}

interface EndpointColumn extends Column {
  readonly cell: (row: EndpointRow) => string;
  readonly isWide?: true;
  /** Shown where a row has something in it. */
  readonly isOptional?: true;
}

const COLUMNS: readonly EndpointColumn[] = [
  { title: 'SERVICE PORT', cell: ({ servicePort }) => servicePort, least: 16 },
  { title: 'ENDPOINT', cell: ({ address }) => address },
  { title: 'POD', cell: ({ pod = '' }) => pod, least: 8, isOptional: true },
  { title: 'NODE', cell: ({ node = '', isLocal }) => (isLocal ? `${node} (this one)` : node), least: 12 },
  { title: 'STATE', cell: endpointState },
  {
    title: 'HINTS',
    cell: ({ zoneHints, nodeHints }) => [...zoneHints, ...nodeHints].join(','),
    isWide: true,
  },
  { title: 'CONNECTIONS', cell: ({ connections }) => countOf(connections), isOptional: true },
  {
    title: 'USED FOR',
    cell: usedFor,
    least: 16,
  },
];

function* endpointLines(
  rows: readonly EndpointRow[],
  { columns, isWide, paint }: Viewer,
  service: string,
): Generator<string> {
  if (rows.length === 0) {
    yield `Service ${cellOf(service)} has no endpoints.\n`;
    return;
  }
  const shown = COLUMNS.filter(
    ({ cell, isWide: whenWide, isOptional }) =>
      isWide || !(whenWide || (isOptional && rows.every((row) => cell(row) === ''))),
  );
  const cells = rows.map((row) => shown.map(({ cell }) => cellOf(cell(row))));
  yield* tableLines(shown, cells, columns, (cell, row) =>
    paint((rows[row]?.pools.length ?? 0) > 0 ? 'green' : 'yellow', cell),
  );
}

function countOf(count: number | undefined): string {
  return count === undefined ? '' : String(count);
}
