/**
 * How many random cases, and which: the same 50 each time. `npm run test:long` runs thousands of others.
 * By hand: JUNCTION_SEED=7 JUNCTION_RUNS=3000 npm test -- test/explain/random.test.ts
 */
import { configureGlobal } from 'fast-check';

export const seed = Number(process.env['JUNCTION_SEED'] ?? 20_250_601);
export const numRuns = Number(process.env['JUNCTION_RUNS'] ?? 50);

configureGlobal({ seed, numRuns });
