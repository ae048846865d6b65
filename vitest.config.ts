import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Those that take longest, and wait most of the time: the others run beside them, instead of after them. */
const SLOW = [
  'ship/imageBuild',
  'ship/imageRun.real',
  'guest/daemon',
  'deploy/prometheus.real',
  'scenarios/currentNft',
  'e2e/brokenNode',
  'e2e/apiFaults',
  // Not beside the first from the start: a guest takes the processor that has none.
  'guest/rules',
  'scenarios/nftablesRandom',
  'prerequisites/guest.real',
  'e2e/hangs',
  'e2e/nftablesMetrics',
  'browser/packet',
  'browser/large',
  'demo/guestDemo',
  'e2e/udpFlows',
  'e2e/localnet',
  'e2e/repairs',
  'ship/systemd.real',
];

class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const index = SLOW.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`));
      return index < 0 ? SLOW.length : index;
    };
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b));
  }
}

/** Units, which leave nothing behind: many files in one process, which saves 0.4 s of processor time for each. */
const SHARING = [
  'test/{config,diff,doctor,explain,house,log,model,plan,proxy,telemetry,text,time}/**/*.test.ts',
  'test/{bundle,daemon,deploy,kubectl,netlink,sources,ui}/**/!(*.real|memory|chaos|watchFaults).test.ts',
  'test/page/*.test.ts',
  'test/modes/**/!(*.real|hang).test.ts',
  'test/scenarios/{rules,nftablesRules,nftablesKernel,random}.test.ts',
];

export default defineConfig({
  test: {
    projects: [
      {
        extends: true,
        test: { name: 'units', include: SHARING, isolate: false },
      },
      {
        extends: true,
        // Each file in a process of its own: tests start children, enter namespaces and load native code.
        test: { name: 'own', include: ['test/**/*.test.ts'], exclude: SHARING },
      },
    ],
    environment: 'node',
    pool: 'forks',
    // Two more than a small machine has processors: apart from the guests, tests wait longer than they compute.
    maxWorkers: 4,
    // Real kernels and whole clusters take their time on a busy machine: ten times what a quiet one needs.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 150_000, interval: 20 } },
    slowTestThreshold: 5000,
    sequence: { sequencer: SlowFirst },
  },
});
