/** What is measured, in which order. Repetitions go round, so that what the machine does meanwhile falls on all. */
import { progress } from '../arguments.ts';
import { runInNamespace } from '../namespace.ts';
import type {
  ChainLayout,
  ChainsRun,
  ChainsTask,
  OwnRun,
  OwnTask,
  PacketsRun,
  PacketsTask,
  Sizes,
} from './messages.ts';

export interface Options {
  readonly program: string;
  readonly sizes: readonly Sizes[];
  /** At which the same is also written as chains. */
  readonly chainSizes: readonly Sizes[];
  readonly samples: number;
  readonly repetitions: number;
}

/** All runs of one thing. */
export interface Series<Task, Run> {
  readonly title: string;
  readonly task: Task;
  readonly runs: Run[];
}

export interface Results {
  readonly base: readonly Series<OwnTask, OwnRun>[];
  readonly variants: readonly Series<OwnTask, OwnRun>[];
  readonly beside: readonly { readonly ours: Series<OwnTask, OwnRun>; readonly chains: ChainSeries[] }[];
  readonly packets: readonly Series<PacketsTask, PacketsRun>[];
}

export type ChainSeries = Series<ChainsTask, ChainsRun>;

const LAYOUTS: readonly ChainLayout[] = ['a chain per service', 'a chain per endpoint too'];

export async function measureAll(options: Options): Promise<Results> {
  const results = arrange(options);
  const all: readonly Series<OwnTask | ChainsTask | PacketsTask, unknown>[] = [
    ...results.base,
    ...results.variants,
    ...results.beside.flatMap(({ ours, chains }) => [ours, ...chains]),
    ...results.packets,
  ];
  // The kernel loads its modules, and the machine reads its programs' files, when they are first needed.
  await runInNamespace(options.program, own({ services: 10, endpoints: 10 }));
  for (let repetition = 1; repetition <= options.repetitions; repetition++)
    for (const { title, task, runs } of all) {
      progress(`${repetition} of ${options.repetitions}: ${task.sizes.services} services, ${title}`);
      runs.push(await runInNamespace(options.program, task));
    }
  progress('');
  return results;
}

function arrange({ sizes, chainSizes, samples }: Options): Results {
  const ends = [sizes[0], sizes.at(-1)].flatMap((each) => each ?? []);
  return {
    base: sizes.map((each) => series('as the daemon does it', { ...own(each), rebuilds: true })),
    variants: ends.flatMap((each) => [
      series('as the daemon does it', own(each)),
      series('with counters', { ...own(each), counters: true }),
      series('nobody listens', { ...own(each), listens: false }),
    ]),
    beside: chainSizes.map((each) => ({
      ours: series('as the daemon does it', own(each)),
      chains: LAYOUTS.map((layout) => series(layout, { kind: 'chains', sizes: each, layout })),
    })),
    packets: [
      ...ends.flatMap((each) => [
        packets(each, 'flat', samples),
        packets(each, 'flat with counters', samples),
      ]),
      ...chainSizes.slice(-1).map((each) => packets(each, 'chains', samples)),
    ],
  };
}

function own(sizes: Sizes): OwnTask {
  return { kind: 'own', sizes, counters: false, listens: true, rebuilds: false };
}

function packets(sizes: Sizes, table: PacketsTask['table'], samples: number): Results['packets'][number] {
  return series(table, { kind: 'packets', sizes, table, samples });
}

function series<Task, Run>(title: string, task: Task): Series<Task, Run> {
  return { title, task, runs: [] };
}
