import { defineConfig } from 'vitest/config';

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
  },
});
