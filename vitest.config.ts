import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** What takes longest comes first, files and folders: the rest runs beside it, instead of after it. */
const FIRST = [
  'guest/daemon.test.ts',
  'ship/image',
  'deploy/prometheus.real.test.ts',
  'e2e/',
  // Not beside the first from the start: a guest takes the processor that has none.
  'guest/',
  'contract/',
  'lab/',
  'page/browser',
  'ship/',
  'scenarios/',
  '.real.test.ts',
  'explain/random.test.ts',
];

class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const index = FIRST.findIndex((name) => moduleId.split('/test/')[1]?.includes(name));
      return index < 0 ? FIRST.length : index;
    };
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b));
  }
}

/** Each in a process of its own: they measure its memory, or change how it is managed. */
const ALONE = ['test/sources/api/memory.test.ts'];

/** What is released, what needs Debian's archive, and a soak: `npm run test:ship`. `npm test` runs the other projects. */
const SHIP = ['test/ship/**/*.test.ts', 'test/e2e/soak.test.ts', 'test/deploy/**/*.real.test.ts'];

export default defineConfig({
  test: {
    projects: [
      { extends: true, test: { name: 'alone', include: ALONE } },
      {
        extends: true,
        // Many files in one process, which loads what they share once: 0.6 s of processor time less for each.
        test: {
          name: 'shared',
          include: ['test/**/*.test.ts'],
          exclude: [...ALONE, ...SHIP],
          isolate: false,
        },
      },
      { extends: true, test: { name: 'ship', include: SHIP, isolate: false } },
    ],
    globalSetup: 'test/support/programs.ts',
    setupFiles: 'test/support/randomCases.ts',
    // What a test changes of the process, the next file of the same process must not find.
    unstubEnvs: true,
    restoreMocks: true,
    environment: 'node',
    pool: 'forks',
    // Four more than a small machine has processors: apart from the guests, tests wait longer than they compute.
    maxWorkers: 6,
    // Real kernels and whole clusters take their time on a busy machine: ten times what a quiet one needs.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 150_000, interval: 20 } },
    slowTestThreshold: 5000,
    sequence: { sequencer: LongFirst },
  },
});
