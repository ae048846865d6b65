/** The numbers as a table, with the budgets beside them. */
import { printColumns } from '../../src/cli/table.ts';
import type { Encoding } from '../../src/sources/api/encoding.ts';
import type { Churn, ChurnReport, Listening, Percentiles, ServerOptions, StartReport } from './messages.ts';

export interface Report {
  readonly size: Pick<ServerOptions, 'services' | 'endpoints'>;
  readonly streamsLists: boolean;
  readonly encoding: Encoding;
  readonly listening: Listening;
  readonly churn: Churn;
  readonly changes: number;
  readonly start: StartReport;
  readonly end: ChurnReport;
  /** CPU from the first answer to the first plan, in milliseconds. */
  readonly toPlan: Readonly<Record<Encoding, Percentiles>>;
}

const MEBIBYTE = 1024 * 1024;

export function printReport(report: Report): string {
  const { size, streamsLists, encoding, listening, churn } = report;
  const world = `${size.services} services × ${size.endpoints} endpoints from an API server, over TLS`;
  const objects = `a Service has ${listening.serviceBytes} B of JSON, an EndpointSlice ${listening.sliceBytes} B`;
  const replaced = churn.replace > 0 ? ` and ${churn.replace} services replaced` : '';
  const header = `${world}, ${streamsLists ? 'streamed' : 'not streamed'}, as ${encoding === 'json' ? 'JSON' : encoding}; ${objects}`;
  return [
    `${header}\n`,
    printColumns(['START', '', 'BUDGET'], startRows(report.start)),
    printColumns(['CPU FROM THE FIRST ANSWER TO THE FIRST PLAN', '', 'BUDGET'], encodingRows(report.toPlan)),
    printColumns(
      [`${churn.rate} CHANGES A SECOND${replaced.toUpperCase()}, FOR ${churn.seconds} S`, '', 'BUDGET'],
      churnRows(report),
    ),
  ].join('\n');
}

function startRows(start: StartReport): readonly (readonly string[])[] {
  return [
    ['every object received', ms(start.listedMs)],
    ['first complete plan', ms(start.plannedMs)],
    ['first transaction, all of its text', `${ms(start.compiledMs)} (${mebibytes(start.bytes)})`],
    ['CPU until then', ms(start.cpuMs)],
    ['longest block of the event loop', ms(start.blockMs), '100 ms'],
    ['resident, peak', mebibytes(start.peak)],
    ['resident after 10 s of rest', mebibytes(start.settled.resident), '250 MiB'],
    ['heap in use then', mebibytes(start.settled.heap)],
    ['heap in use after a collection', mebibytes(start.live.heap)],
    ['resident after a collection', mebibytes(start.live.resident)],
    ['CPU at rest', `${(start.idleShare * 100).toFixed(2)} % of a core`, 'none'],
  ];
}

function encodingRows({ json, protobuf }: Report['toPlan']): readonly (readonly string[])[] {
  return [
    ['from JSON', spread(json)],
    ['from protobuf', spread(protobuf)],
    ['protobuf, of JSON', (protobuf.p50 / json.p50).toFixed(2), '0.50'],
  ];
}

function churnRows({ changes, start, end }: Report): readonly (readonly string[])[] {
  return [
    ['changes sent, received, syncs', `${changes}, ${end.events}, ${end.syncs}`],
    ['from the event to the plan', spread(end.toPlanMs)],
    ['from the event to the text', spread(end.toTextMs), 'p50 under 1 ms'],
    ["from the server's write to the text", spread(end.fromServerMs)],
    ['CPU', `${ms(end.cpuMs)} = ${((end.cpuMs / end.seconds / 1000) * 100).toFixed(1)} % of a core`],
    ['CPU of one change', ms(end.cpuMs / Math.max(1, end.events))],
    ['longest block of the event loop', ms(end.blockMs), '100 ms'],
    ['resident at the end', mebibytes(end.end.resident), '250 MiB'],
    ['heap after a collection, growth', mebibytes(end.live.heap - start.live.heap), 'none'],
    ['resident after a collection, growth', mebibytes(end.live.resident - start.live.resident)],
  ];
}

function spread({ p50, p99, most }: Percentiles): string {
  return `p50 ${ms(p50)}, p99 ${ms(p99)}, most ${ms(most)}`;
}

function ms(value: number): string {
  return value >= 1000 ? `${(value / 1000).toFixed(2)} s` : `${value.toFixed(value < 10 ? 2 : 0)} ms`;
}

function mebibytes(value: number): string {
  return `${(value / MEBIBYTE).toFixed(1)} MiB`;
}
