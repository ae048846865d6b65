/** `npm start`: sets up and runs the demo. Arguments are the demo's; `npm start -- --help` lists them. */
import { setUpOrExit } from './setup.mjs';
import { endWithAncestors } from './support/ancestors.mjs';

endWithAncestors();
await setUpOrExit({ programs: 'none' });
const { parseOptions } = await import('../dist/demo-options.js');
const parsed = parseOptions(process.argv.slice(2));
if (parsed.kind === 'run') await setUpOrExit({ programs: parsed.options.mode });
if (parsed.options?.image) await setUpOrExit({ programs: 'container' });
// In this process: one less to pass Ctrl-C on, or to be left behind.
await import('../dist/demo.js');
