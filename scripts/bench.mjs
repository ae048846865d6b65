/** `npm run bench`: sets up and runs the benchmarks, of which most need network namespaces. Arguments are theirs, but for --node. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setUpOrExit } from './setup.mjs';
import { runOnNode, takeNode } from './support/otherNode.mjs';
import { ROOT } from './support/paths.mjs';
import { runWithLab } from './support/privileged.mjs';
import { endingPlainly, runAloud } from './support/run.mjs';

/** Those that need more than most: a browser, or the guest whose kernel has IPVS. */
const PROGRAMS = {
  ipvs: 'guestBench',
  loss: 'guestBench',
  sizing: 'guestBench',
  hostile: 'guestBench',
};
const NEEDS_NO_LAB = new Set(['ipvs']);

await endingPlainly(async () => {
  const { wanted, rest: args } = takeNode(process.argv.slice(2));
  if (wanted !== undefined) {
    process.exitCode = await runOnNode(wanted, [fileURLToPath(import.meta.url), ...args]);
    return;
  }
  await setUpOrExit({ programs: PROGRAMS[args[0]] ?? 'bench' });
  const run = NEEDS_NO_LAB.has(args[0]) ? runAloud : runWithLab;
  process.exitCode = await run([process.execPath, join(ROOT, 'dist/bench.js'), ...args]);
});
