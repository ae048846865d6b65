/** `junction services`: what is served here, and what is not. */
import { flagValue, type ParsedFlags } from '../config/commandLine.ts';
import type { ServiceRow } from '../explain/types.ts';
import { type Shown, showAnswer, type Viewer } from './answerOutput.ts';
import { openAnswers } from './answers.ts';
import { OWN_FLAGS } from './ownFlags.ts';
import { matcherOf } from './objectNames.ts';
import type { Output } from './output.ts';
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
    const nothing = all.length === 0 ? 'No services.' : `None of ${all.length} services.`;
    return {
      answer: rows,
      text: (viewer) => serviceLines(rows, viewer, nothing),
      exitCode: 0,
    } satisfies Shown;
  });
}

interface ServiceColumn extends Column {
  readonly cell: (row: ServiceRow) => string;
  readonly isWide?: true;
  /** Shown where a row has something in it. */
  readonly isOptional?: true;
}

const COLUMNS: readonly ServiceColumn[] = [
  { title: 'SERVICE', cell: ({ service }) => service, least: 24 },
  { title: 'TYPE', cell: ({ type }) => type },
  { title: 'CLUSTER IP', cell: ({ clusterIPs }) => listed(clusterIPs), least: 15 },
  {
    title: 'OTHER IPS',
    cell: ({ externalIPs, loadBalancerIPs }) => listed([...loadBalancerIPs, ...externalIPs]),
    least: 12,
    isOptional: true,
  },
  { title: 'PORTS', cell: ({ ports }) => listed(ports), least: 12 },
  {
    title: 'READY',
    cell: ({ endpoints: { ready, all, local } }) => `${ready}/${all}${local > 0 ? ` (${local} here)` : ''}`,
  },
  { title: 'POLICY', cell: policyOf, isOptional: true },
  {
    title: 'AFFINITY',
    cell: ({ affinitySeconds }) => (affinitySeconds === undefined ? '' : `${affinitySeconds}s`),
    isWide: true,
  },
  {
    title: 'CONN/S',
    cell: ({ rate }) => (rate === undefined ? '' : rate.toFixed(1)),
    isOptional: true,
  },
  {
    title: 'STATE',
    cell: ({ state, detail }) => (detail === undefined ? state : `${state}: ${detail}`),
    least: 12,
  },
];

function* serviceLines(
  rows: readonly ServiceRow[],
  { columns, isWide, paint }: Viewer,
  nothing: string,
): Generator<string> {
  if (rows.length === 0) {
    yield `${nothing}\n`;
    return;
  }
  const shown = COLUMNS.filter(
    ({ cell, isWide: whenWide, isOptional }) =>
      isWide || !(whenWide || (isOptional && rows.every((row) => cell(row) === ''))),
  );
  const cells = rows.map((row) => shown.map(({ cell }) => cellOf(cell(row))));
  yield* tableLines(shown, cells, columns, (line, index) => {
    const state = rows[index]?.state;
    const last = line.length - 1;
    const colour = state === 'ok' ? 'green' : state === 'refused' ? 'red' : 'yellow';
    return line.map((cell, column) => (column === last ? paint(colour, cell) : cell));
  });
}

function policyOf({ externalTrafficPolicy, internalTrafficPolicy }: ServiceRow): string {
  const local = [
    ...(externalTrafficPolicy === 'Local' ? ['external Local'] : []),
    ...(internalTrafficPolicy === 'Local' ? ['internal Local'] : []),
  ];
  return local.join(', ');
}

function listed(texts: readonly string[]): string {
  return texts.length === 0 ? '' : texts.join(',');
}
