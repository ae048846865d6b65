// Makes the pictures of docs/page.md again, from the demo's cluster. A test makes them; this keeps them.
import { join } from 'node:path';
import { setUpOrExit } from './setup.mjs';
import { ROOT } from './support/paths.mjs';
import { runWithLab } from './support/privileged.mjs';

await setUpOrExit({ programs: 'tests' });
process.env.JUNCTION_SCREENSHOTS = 'true';
const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs');
const test = 'test/page/browser/screenshots.test.ts';
process.exitCode = await runWithLab([process.execPath, vitest, 'run', test, '-t', 'pictures'], {
  lacking: 'fail',
});
