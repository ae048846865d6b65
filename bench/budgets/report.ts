/** The numbers of both checkouts beside each other, and the budgets. */
import { printColumns } from '../../src/cli/table.ts';
import { mebibytes, median, ms, times } from '../spread.ts';
import type { BudgetRun, Cluster, Measured, StartRun } from './messages.ts';

interface Budgets {
  /** Of the checkouts; the last is this one. */
  readonly names: readonly string[];
  readonly start: StartRun;
  readonly measured: readonly Measured[];
}

interface Quantity {
  readonly name: string;
  readonly values: (run: BudgetRun) => readonly number[];
  readonly print?: (value: number) => string;
  /** The largest counts, not the middle one. */
  readonly isWorst?: boolean;
  /** By mode and size, as in `budgetOf`; '': for every cluster. */
  readonly budgets?: Readonly<Record<string, string>>;
}

const QUANTITIES: readonly Quantity[] = [
  {
    name: 'process start to forwarding',
    values: ({ cold }) => [cold.forwardingMs],
    budgets: { 'iptables-nft:10000x3': '2.5 s', 'nftables:10000x3': '1.2 s' },
  },
  { name: '  its CPU time', values: ({ cold }) => [cold.forwardingCpuMs] },
  { name: '  until all lists are read', values: ({ cold }) => [cold.listedMs] },
  { name: '  CPU time until then', values: ({ cold }) => [cold.listedCpuMs] },
  {
    name: '  first sync: plan to last commit',
    values: ({ cold }) => [cold.firstSyncMs],
    budgets: { 'iptables-nft:10000x3': '1.5 s' },
  },
  {
    name: 'one change: API server to notification',
    values: ({ changeMs }) => changeMs,
    budgets: { 'iptables-nft:10000x3': '3 ms, 3× of 300' },
  },
  { name: '  the sync of it', values: ({ changeSyncMs }) => changeSyncMs },
  {
    name: 'full verification',
    values: ({ verifyMs }) => [verifyMs],
    budgets: { 'iptables-nft:10000x3': '0.7 s, sliced' },
  },
  { name: '  beside twenty changes', values: ({ busyVerifyMs }) => [busyVerifyMs] },
  {
    name: 'restart until a change is taken',
    values: ({ restart }) => [restart.forwardingMs],
    budgets: { 'iptables-nft:10000x3': '1.5 s', 'nftables:30000x10': '1.5 s' },
  },
  { name: '  of it, after all lists are read', values: ({ restart }) => [sinceLists(restart)] },
  {
    name: '  longest wait of a change after that',
    values: ({ restartChangeMs }) => restartChangeMs,
    isWorst: true,
    budgets: { '': '50 ms' },
  },
  { name: 'the same after kill -9', values: ({ killed }) => [killed.forwardingMs] },
  { name: '  of it, after all lists are read', values: ({ killed }) => [sinceLists(killed)] },
  {
    name: 'resident, settled',
    values: ({ coldMemory }) => [coldMemory.settled],
    print: mebibytes,
    budgets: { '10000x3': '110 MB', '30000x10': '280 MB' },
  },
  {
    name: '  peak',
    values: ({ coldMemory }) => [coldMemory.peak],
    print: mebibytes,
    budgets: { '10000x3': '1.3× of 110 MB', '30000x10': '1.3× of 280 MB' },
  },
  {
    name: 'resident after a restart, settled',
    values: ({ restartMemory }) => [restartMemory.settled],
    print: mebibytes,
    budgets: { '10000x3': '110 MB', '30000x10': '280 MB' },
  },
  {
    name: '  peak',
    values: ({ restartMemory }) => [restartMemory.peak],
    print: mebibytes,
    budgets: { '10000x3': '1.3× of 110 MB', '30000x10': '1.3× of 280 MB' },
  },
];

function sinceLists({ forwardingMs, listedMs }: BudgetRun['restart']): number {
  return Math.max(0, forwardingMs - listedMs);
}

export function printBudgets({ names, start, measured }: Budgets): string {
  const clusters = [...new Set(measured.map(({ cluster }) => cluster))];
  return [
    ...(start.length > 0 ? [startTable(names, start)] : []),
    ...clusters.map((cluster) => clusterTable(names, cluster, measured)),
    ...growth(names, measured),
  ].join('\n');
}

function startTable(names: readonly string[], start: StartRun): string {
  const row = (name: string, values: (of: StartRun[number]) => readonly number[], budget: string) =>
    cells(
      name,
      start.map((each) => median(values(each))),
      ms,
      budget,
    );
  return printColumns(
    ['THE PROGRAM', ...heads(names), 'BUDGET'],
    [
      row('junction --version', ({ versionMs }) => versionMs, '100 ms'),
      row('junction run, to its first request', ({ firstRequestMs }) => firstRequestMs, '100 ms'),
    ],
  );
}

/** The first content type is what the checkouts are compared with; others stand behind, of this checkout. */
function clusterTable(names: readonly string[], cluster: Cluster, measured: readonly Measured[]): string {
  const own = measured.filter((each) => each.cluster === cluster);
  const [{ contentType: first } = { contentType: '' }] = own;
  const compared = own.filter(({ contentType }) => contentType === first);
  const others = own.filter(({ contentType }) => contentType !== first);
  const rows = QUANTITIES.map(({ name, values, print = ms, isWorst = false, budgets = {} }) => {
    const pick = ({ runs }: Measured): number => {
      const all = runs.flatMap(values).filter((value) => Number.isFinite(value));
      return isWorst && all.length > 0 ? Math.max(...all) : median(all);
    };
    return [
      ...cells(name, compared.map(pick), print, budgetOf(budgets, cluster)),
      ...others.map((each) => printed(pick(each), print)),
    ];
  });
  const besides = others.map(({ contentType }) => contentType.replace(/^.*[./]/, '').toUpperCase());
  return printColumns([titleOf(cluster), ...heads(names), 'BUDGET', ...besides], rows);
}

/** What one change costs in the larger cluster, as a multiple of the smaller one. */
function growth(names: readonly string[], measured: readonly Measured[]): readonly string[] {
  const changeIn = (services: number, checkout: number): number => {
    const of = measured.find(
      (each) =>
        each.checkout === checkout &&
        each.cluster.mode === 'iptables-nft' &&
        each.cluster.sizes.services === services,
    );
    return median(of?.runs.flatMap(({ changeMs }) => changeMs) ?? []);
  };
  const ratios = names.map((_, checkout) => changeIn(10_000, checkout) / changeIn(300, checkout));
  if (ratios.every((ratio) => Number.isNaN(ratio))) return [];
  const row = cells('one change, 10,000 over 300 services', ratios, times, '3×').toSpliced(-2, 1);
  return [
    printColumns(['GROWTH, IPTABLES-NFT', ...names.map((name) => name.toUpperCase()), 'BUDGET'], [row]),
  ];
}

function heads(names: readonly string[]): readonly string[] {
  return [...names.map((name) => name.toUpperCase()), 'RATIO'];
}

/** Ratio: the last to the first. */
function cells(
  name: string,
  values: readonly number[],
  print: (value: number) => string,
  budget: string,
): string[] {
  const [first = Number.NaN] = values;
  const ratio = values.length > 1 ? (values.at(-1) ?? Number.NaN) / first : Number.NaN;
  return [name, ...values.map((value) => printed(value, print)), printed(ratio, times), budget];
}

function printed(value: number, print: (value: number) => string): string {
  return Number.isFinite(value) ? print(value) : '–';
}

function titleOf({ mode, sizes }: Cluster): string {
  return `${mode.toUpperCase()}, ${sizes.services} × ${sizes.endpoints}`;
}

function budgetOf(budgets: Readonly<Record<string, string>>, { mode, sizes }: Cluster): string {
  const size = `${sizes.services}x${sizes.endpoints}`;
  return budgets[`${mode}:${size}`] ?? budgets[size] ?? budgets[''] ?? '';
}
