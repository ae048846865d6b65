/** The numbers as tables, with the budgets beside them. */
import { printColumns } from '../../src/cli/table.ts';
import { percentiles } from '../meters.ts';
import { mebibytes, median, ms, spread, times } from '../spread.ts';
import type { OwnRun, OwnTask, PacketsTask, Sizes } from './messages.ts';
import type { Results, Series } from './plan.ts';

type Print = (value: number) => string;
type OwnSeries = Series<OwnTask, OwnRun>;
type Value = (run: OwnRun) => number;

export function printReport({ base, variants, beside, packets }: Results): string {
  return [
    printColumns(['COLD', ...base.map(sizeOf), 'BUDGET'], coldRows(base)),
    printColumns(['LATER', ...base.map(sizeOf), 'GROWTH', 'BUDGET'], laterRows(base)),
    printColumns(['THE PROCESS', ...base.map(sizeOf)], processRows(base)),
    ...bySize(variants).map((each) => variantTable(each)),
    besideTable(beside),
    packetTable(packets),
  ].join('\n');
}

function row(
  name: string,
  series: readonly OwnSeries[],
  print: Print,
  value: Value,
  ...others: readonly string[]
): readonly string[] {
  return [name, ...series.map(({ runs }) => spread(runs.map(value), print)), ...others];
}

function coldRows(base: readonly OwnSeries[]): readonly (readonly string[])[] {
  return [
    row('plan', base, ms, ({ cold }) => cold.plan),
    row('compile', base, ms, ({ cold }) => cold.compile),
    row('encode', base, ms, ({ cold }) => cold.encode),
    row('wait for the kernel', base, ms, ({ cold }) => cold.wait),
    row('everything', base, ms, ({ cold }) => cold.total, '3 s at 30,000 × 10'),
    row('its CPU time, on all threads', base, ms, ({ cold }) => cold.cpu),
    row('messages', base, mebibytes, ({ cold }) => cold.bytes),
    row('commits', base, String, ({ cold }) => cold.commits),
    row('longest commit, as seen', base, ms, ({ cold }) => cold.longestCommit, 'about 50 ms'),
  ];
}

function laterRows(base: readonly OwnSeries[]): readonly (readonly string[])[] {
  const later = (name: string, value: Value, budget = ''): readonly string[] => {
    const middles = base.map(({ runs }) => median(runs.map(value)));
    const growth = (middles.at(-1) ?? Number.NaN) / (middles[0] ?? Number.NaN);
    return row(name, base, ms, value, times(growth), budget);
  };
  return [
    later('one endpoint replaced', ({ changeMs }) => median(changeMs), '2 ms at 30,000, and 3×'),
    later('  one in a hundred takes', ({ changeMs }) => percentiles(changeMs).p99),
    later('  of it, on the way to the kernel', ({ changeCommitMs }) => median(changeCommitMs)),
    later('one service added', ({ addMs }) => median(addMs)),
    later('one service removed', ({ removeMs }) => median(removeMs)),
    later('a pool grows to a new size', ({ firstGrowMs }) => firstGrowMs),
    later('a pool grows from 3 to 4', ({ growMs }) => median(growMs)),
    later('1,000 changes at once (or all)', ({ thousandMs }) => median(thousandMs)),
    later('a rebuilt table, swapped', ({ rebuildMs }) => rebuildMs ?? Number.NaN),
  ];
}

function processRows(base: readonly OwnSeries[]): readonly (readonly string[])[] {
  return [
    row('resident after the cold sync', base, mebibytes, ({ settled }) => settled.resident),
    row('heap in use then', base, mebibytes, ({ settled }) => settled.heap),
    row('heap in use after a collection', base, mebibytes, ({ live }) => live.heap),
    row('longest block of the event loop', base, ms, ({ blockMs }) => blockMs),
    row('notifications missed', base, String, ({ lost }) => lost),
  ];
}

function variantTable(series: readonly OwnSeries[]): string {
  const [first] = series;
  return printColumns(
    [first ? sizeOf(first) : '', ...series.map(({ title }) => title.toUpperCase())],
    [
      row('cold, everything', series, ms, ({ cold }) => cold.total),
      row('  its CPU time, on all threads', series, ms, ({ cold }) => cold.cpu),
      row('  commits, summed up', series, ms, ({ cold }) => cold.commit),
      row('  longest commit', series, ms, ({ cold }) => cold.longestCommit),
      row('one endpoint replaced', series, ms, ({ changeMs }) => median(changeMs)),
      row('  of it, on the way to the kernel', series, ms, ({ changeCommitMs }) => median(changeCommitMs)),
      row('1,000 changes at once (or all)', series, ms, ({ thousandMs }) => median(thousandMs)),
    ],
  );
}

function besideTable(beside: Results['beside']): string {
  const rows = beside.flatMap(({ ours, chains }) => [
    [
      sizeOf(ours),
      'Junction',
      spread(
        ours.runs.map(({ cold }) => cold.total),
        ms,
      ),
      spread(
        ours.runs.map(({ changeMs }) => median(changeMs)),
        ms,
      ),
      spread(
        ours.runs.map(({ addMs }) => median(addMs)),
        ms,
      ),
    ],
    ...chains.map(({ title, runs }) => [
      '',
      `nft -f, ${title}`,
      spread(
        runs.map(({ coldMs }) => coldMs),
        ms,
      ),
      spread(
        runs.map(({ changeMs }) => median(changeMs)),
        ms,
      ),
      spread(
        runs.map(({ addMs }) => median(addMs)),
        ms,
      ),
    ]),
  ]);
  return printColumns(['SERVICES', 'AS', 'COLD', 'ONE ENDPOINT REPLACED', 'ONE SERVICE ADDED'], rows);
}

function packetTable(packets: Results['packets']): string {
  const rows = packets.flatMap((each) =>
    (['tcp', 'udp'] as const).map((protocol) => {
      const of = (value: 'direct' | 'service'): readonly number[] =>
        each.runs.map((run) => run[protocol][value]);
      const more = each.runs.map((run) => run[protocol].service - run[protocol].direct);
      return [
        protocol === 'tcp' ? sizeOf(each) : '',
        protocol === 'tcp' ? each.title : '',
        protocol === 'tcp' ? 'TCP connection' : 'UDP question and answer',
        spread(of('direct'), microseconds),
        spread(of('service'), microseconds),
        spread(more, microseconds),
      ];
    }),
  );
  return printColumns(['SERVICES', 'TABLE', 'FIRST PACKETS', 'TO AN ENDPOINT', 'TO A SERVICE', 'MORE'], rows);
}

function bySize(series: readonly OwnSeries[]): readonly (readonly OwnSeries[])[] {
  const sizes = [...new Set(series.map(({ task }) => task.sizes.services))];
  return sizes.map((services) => series.filter(({ task }) => task.sizes.services === services));
}

function sizeOf({ task }: { readonly task: OwnTask | PacketsTask }): string {
  return titleOf(task.sizes);
}

export function titleOf({ services, endpoints }: Sizes): string {
  return `${services} × ${endpoints}`;
}

function microseconds(value: number): string {
  return `${value.toFixed(1)} µs`;
}
