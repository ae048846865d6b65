/** `npm run bench`: sets up and runs the benchmarks, of which most need network namespaces. Arguments are theirs. */
import { join } from 'node:path';
import { setUpOrExit } from './setup.mjs';
import { ROOT } from './support/paths.mjs';
import { runWithLab } from './support/privileged.mjs';
import { Failure, runAloud } from './support/run.mjs';

const NEEDS_NO_LAB = new Set(['api', 'ipvs']);

const args = process.argv.slice(2);
await setUpOrExit({ programs: args[0] === 'ui' ? 'browser' : 'iptables' });
try {
  const run = NEEDS_NO_LAB.has(args[0]) ? runAloud : runWithLab;
  process.exitCode = await run([process.execPath, join(ROOT, 'dist/bench.js'), ...args]);
} catch (error) {
  if (!(error instanceof Failure)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
