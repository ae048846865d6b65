/** Which Node may set up and test: the lines with long-term support, of those what the development tools need. */
import { Failure } from './run.mjs';

/** The first release of each line that has what vitest and its packages call: import.meta.dirname, require() of modules. */
const LINES = { 20: '20.19', 22: '22.12', 24: '24.0', 26: '26.0' };
const SUPPORTED = 'Junction is tested on Node 20.19 and newer of that line, 22, 24 and 26';
const CURE = 'Get one of these from https://nodejs.org/ or your package manager.';

/** Refuses what cannot work, and warns of lines that nobody tests. */
export function checkNode(version, warn = console.warn) {
  const [major, minor] = version.split('.').map(Number);
  const first = LINES[major];
  if (first !== undefined) {
    if (minor >= Number(first.split('.')[1])) return;
    throw new Failure(
      `Junction needs Node ${first} or newer of the line ${major}; this is ${version}. ${CURE}`,
    );
  }
  if (major < 22)
    throw new Failure(`Junction needs Node 20.19 or newer, and not 21; this is ${version}. ${CURE}`);
  const reason = major % 2 === 1 ? 'a line without long-term support' : 'newer than all of them';
  warn(`${SUPPORTED}. This is ${version}, ${reason}: going on without a promise.`);
}
