/** `npm run soak`: sets up and runs the soak, which needs network namespaces. Arguments are its own. */
import { join } from 'node:path';
import { setUpOrExit } from './setup.mjs';
import { ROOT } from './support/paths.mjs';
import { runWithLab } from './support/privileged.mjs';
import { endingPlainly } from './support/run.mjs';

await setUpOrExit({ programs: 'bench' });
await endingPlainly(async () => {
  process.exitCode = await runWithLab([
    process.execPath,
    join(ROOT, 'dist/soak.js'),
    ...process.argv.slice(2),
  ]);
});
