/** The numbers as tables. */
import { printColumns } from '../../src/cli/table.ts';
import type { Sizes } from '../cluster.ts';
import { mebibytes, median, ms, spread, times } from '../spread.ts';
import type { GuestRun, OwnRun, ToolsRun } from './messages.ts';

/** All runs of one size. A run of ours and one of the programs that have the same index were neighbours. */
interface Column {
  readonly sizes: Sizes;
  readonly own: readonly OwnRun[];
  readonly tools: readonly ToolsRun[];
}

type Print = (value: number) => string;

export function printGuestReport(runs: readonly GuestRun[], sizes: readonly Sizes[]): string {
  const columns = sizes.map((each): Column => {
    const ofSize = runs.filter((run) => run.sizes.services === each.services);
    return {
      sizes: each,
      own: ofSize.filter((run) => run.kind === 'own'),
      tools: ofSize.filter((run) => run.kind === 'tools'),
    };
  });
  return [
    printColumns(['COLD', ...columns.map(title)], coldRows(columns)),
    printColumns(['LATER', ...columns.map(title), 'GROWTH'], laterRows(columns)),
    printColumns(['THE PROCESS', ...columns.map(title)], processRows(columns)),
  ].join('\n');
}

function coldRows(columns: readonly Column[]): readonly (readonly string[])[] {
  const ours = (name: string, value: (run: OwnRun) => number): readonly string[] => [
    name,
    ...columns.map(({ own }) => spread(own.map(value), ms)),
  ];
  const theirs = (name: string, value: (run: ToolsRun) => number): readonly string[] => [
    name,
    ...columns.map(({ tools }) => spread(tools.map(value), ms)),
  ];
  return [
    ours('Junction, everything', ({ cold }) => cold.total),
    ours('  compile and compare', ({ cold }) => restOf(cold)),
    ours('  sets', ({ cold }) => cold.sets),
    ours('  virtual servers', ({ cold }) => cold.servers),
    ours('  addresses', ({ cold }) => cold.addresses),
    ours('  rules, by iptables', ({ cold }) => cold.rules),
    theirs('ipset restore', ({ ipset }) => ipset),
    theirs('ipvsadm --restore', ({ ipvsadm }) => ipvsadm),
    theirs('ip -batch', ({ ip }) => ip),
    ['Junction / the three', ...columns.map((column) => spread(ratios(column), times))],
  ];
}

function restOf({ total, sets, servers, addresses, rules }: OwnRun['cold']): number {
  return total - sets - servers - addresses - rules;
}

function ratios({ own, tools }: Column): readonly number[] {
  return own.flatMap(({ cold }, index) => {
    const beside = tools[index];
    return beside ? [cold.total / (beside.ipset + beside.ipvsadm + beside.ip)] : [];
  });
}

function laterRows(columns: readonly Column[]): readonly (readonly string[])[] {
  const row = (name: string, value: (run: OwnRun) => number): readonly string[] => {
    const [first, ...others] = columns.map(({ own }) => median(own.map(value)));
    const growth = others.at(-1);
    return [
      name,
      ...columns.map(({ own }) => spread(own.map(value), ms)),
      first !== undefined && growth !== undefined ? times(growth / first) : '',
    ];
  };
  return [
    row('one endpoint replaced', ({ changeMs }) => median(changeMs)),
    row('one service added', ({ addMs }) => median(addMs)),
    row('one service removed', ({ removeMs }) => median(removeMs)),
    row('everything read back', ({ verifyMs }) => verifyMs),
  ];
}

function processRows(columns: readonly Column[]): readonly (readonly string[])[] {
  const row = (name: string, print: Print, value: (run: OwnRun) => number): readonly string[] => [
    name,
    ...columns.map(({ own }) => spread(own.map(value), print)),
  ];
  return [
    row('resident after the cold sync', mebibytes, ({ settled }) => settled.resident),
    row('heap in use after a collection', mebibytes, ({ live }) => live.heap),
    row('longest block of the event loop', ms, ({ blockMs }) => blockMs),
  ];
}

function title({ sizes }: Pick<Column, 'sizes'>): string {
  return `${sizes.services} × ${sizes.endpoints}`;
}
