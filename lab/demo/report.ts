/** The table: who dialled what, who answered, and whom they saw. */
import { type painter, printColumns, visibleLength } from '../../src/cli/table.ts';
import type { Outcome } from '../protocol.ts';
import { hostPort } from '../../src/model/ip.ts';
import type { FrontendKind } from '../../src/plan/types.ts';
import { answeringHosts, isNode1, type Row } from './traffic.ts';

type Paint = ReturnType<typeof painter>;

const HEADER = ['', 'FROM', 'TO', 'ADDRESS', 'ANSWERED BY', 'SOURCE THEY SAW'];

const KINDS: Readonly<Record<FrontendKind, string>> = {
  clusterIP: 'cluster IP',
  externalIP: 'external IP',
  loadBalancerIP: 'load balancer',
  nodePort: 'node port',
};

/** Columns that the first line of a row has where the terminal is too narrow for all of them. */
const NARROW = 4;

/** `columns`: of the terminal; unset: as many as it takes. */
export function printRows(
  rows: readonly Row[],
  paint: Paint,
  columns: number | undefined = process.stdout.columns,
): string {
  const table = rows.map((row) => cells(row, paint));
  const wide = printColumns(HEADER, table);
  const isWide = columns === undefined || wide.split('\n').every((line) => visibleLength(line) <= columns);
  const [header = '', ...lines] = (isWide ? wide : printNarrow(table, columns)).split('\n');
  const surprises = rows.flatMap((row) =>
    row.surprises.map((text) => paint('red', `✗ ${row.probe.from} to ${nameOf(row)}: ${text}\n`)),
  );
  return [paint('bold', header), ...lines].join('\n') + surprises.join('');
}

export function printVerdict(rows: readonly Row[], paint: Paint): string {
  const wrong = rows.filter(({ surprises }) => surprises.length > 0).length;
  const requests = rows.reduce((sum, { outcomes }) => sum + outcomes.length, 0);
  return wrong === 0
    ? paint('green', `All ${requests} requests went as planned.`)
    : paint('red', `${wrong} of ${rows.length} rows did not go as planned.`);
}

/** Who answered, and whom they saw, below each row. */
function printNarrow(table: readonly (readonly string[])[], columns: number): string {
  const first = printColumns(
    HEADER.slice(0, NARROW),
    table.map((row) => row.slice(0, NARROW)),
  ).split('\n');
  const below = table.map(([, , , , answered = '', seen = '']) => {
    const how = seen.includes('–') ? seen : `saw ${seen}`;
    const both = `   ${answered} ${how}`;
    return visibleLength(both) <= columns ? [both] : [`   ${answered}`, `   ${how}`];
  });
  const [header = '', ...lines] = first;
  const rows = below.flatMap((more, index) => [lines[index] ?? '', ...more]);
  return `${[`${header}, AND WHO ANSWERED`, ...rows].join('\n')}\n`;
}

function cells(row: Row, paint: Paint): readonly string[] {
  const { probe, target, surprises } = row;
  return [
    surprises.length === 0 ? paint('green', '✓') : paint('red', '✗'),
    probe.from,
    nameOf(row),
    hostPort(target.address, target.port),
    printAnswers(row, paint),
    printSeen(row, paint),
  ];
}

function nameOf({ probe }: Row): string {
  const name = probe.service.startsWith('shop/') ? probe.service.slice('shop/'.length) : probe.service;
  return `${name} ${KINDS[probe.kind]}${probe.transport === 'udp' ? ' (UDP)' : ''}`;
}

const FAILURES: Readonly<Record<Exclude<Outcome['outcome'], 'answer'>, string>> = {
  refused: 'refused',
  timeout: 'no answer',
  unreachable: 'unreachable',
};

function printAnswers({ outcomes }: Row, paint: Paint): string {
  const parts = [...answeringHosts(outcomes)].map(([host, count]) => `${host} ×${count}`);
  for (const [outcome, text] of Object.entries(FAILURES)) {
    const count = outcomes.filter((one) => one.outcome === outcome).length;
    if (count > 0) parts.push(paint('yellow', `${text} ×${count}`));
  }
  return parts.join(', ');
}

function printSeen(row: Row, paint: Paint): string {
  const peers = [
    ...new Set(row.outcomes.flatMap((one) => (one.outcome === 'answer' ? [one.reply.peer] : []))),
  ].sort((one, other) => (one < other ? -1 : 1));
  if (peers.length === 0) return paint('dim', reasonOf(row));
  if (row.probe.from === 'node1') return `${peers.join(', ')} (node1)`;
  const own = peers.filter((peer) => !isNode1(peer));
  const masqueraded = peers.filter(isNode1);
  return [
    ...(own.length > 0
      ? [`${own.join(', ')} (${own.every((peer) => peer === row.source) ? 'its own' : '?'})`]
      : []),
    ...(masqueraded.length > 0 ? [`${masqueraded.join(', ')} (masqueraded)`] : []),
  ].join('; ');
}

function reasonOf({ decision }: Row): string {
  if (decision.verdict === 'pass') return '– no service has this address';
  return decision.verdict === 'forward' ? '–' : `– ${decision.reason}`;
}
