import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** The guest's tests take longest by far, and wait for it most of the time: the others run beside them. */
class GuestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isGuest = ({ moduleId }: TestSpecification): boolean => moduleId.endsWith('/guest/guest.test.ts');
    return [...sorted.filter(isGuest), ...sorted.filter((file) => !isGuest(file))];
  }
}

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    environment: 'node',
    // Each file in a process of its own: tests start children, enter namespaces and load native code.
    pool: 'forks',
    // Two, because kernel tests wait for each other's locks more than they compute.
    maxWorkers: 2,
    // Real kernels and whole clusters take their time on a busy machine.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    slowTestThreshold: 5000,
    sequence: { sequencer: GuestFirst },
  },
});
