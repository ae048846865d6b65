/** `npm run bench`: sets up and runs the benchmarks, of which most need network namespaces. Arguments are theirs. */
import { join } from 'node:path';
import { setUpOrExit } from './setup.mjs';
import { ROOT } from './support/paths.mjs';
import { runWithLab } from './support/privileged.mjs';
import { Failure, runAloud } from './support/run.mjs';

await setUpOrExit();
try {
  const args = process.argv.slice(2);
  const run = args[0] === 'api' ? runAloud : runWithLab;
  process.exitCode = await run([process.execPath, join(ROOT, 'dist/bench.js'), ...args]);
} catch (error) {
  if (!(error instanceof Failure)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
