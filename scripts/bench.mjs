/** `npm run bench`: sets up and runs the benchmarks, of which most need network namespaces. Arguments are theirs. */
import { join } from 'node:path';
import { setUpOrExit } from './setup.mjs';
import { ROOT } from './support/paths.mjs';
import { runWithLab } from './support/privileged.mjs';
import { endingPlainly, runAloud } from './support/run.mjs';

const NEEDS_NO_LAB = new Set(['api', 'encode', 'ipvs']);

const args = process.argv.slice(2);
await setUpOrExit({ programs: args[0] === 'ui' ? 'browser' : 'iptables' });
await endingPlainly(async () => {
  const run = NEEDS_NO_LAB.has(args[0]) ? runAloud : runWithLab;
  process.exitCode = await run([process.execPath, join(ROOT, 'dist/bench.js'), ...args]);
});
