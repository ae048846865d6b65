// Makes the pictures of docs/page.md again, from the demo's cluster, as the tests of the page open it.
import { join } from 'node:path';
import { setUpOrExit } from './setup.mjs';
import { ROOT } from './support/paths.mjs';
import { runWithLab } from './support/privileged.mjs';

await setUpOrExit({ programs: 'tests' });
process.env.JUNCTION_SCREENSHOTS = 'true';
const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs');
const test = 'test/page/browser.test.ts';
process.exitCode = await runWithLab([process.execPath, vitest, 'run', test, '-t', 'pictures'], {
  lacking: 'fail',
});
