/** `npm start`: sets up and runs the demo. Arguments are the demo's; `npm start -- --help` lists them. */
import { setUpOrExit } from './setup.mjs';

await setUpOrExit();
// In this process: one less to pass Ctrl-C on, or to be left behind.
await import('../dist/demo.js');
