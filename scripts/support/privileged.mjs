/** Runs a command where it can make network namespaces: as it is, or as root of a user namespace of its own. */
import { Failure, runAloud } from './run.mjs';

/** `lacking: 'warn'` runs it all the same where neither is possible. Answers with the exit code. */
export async function runWithLab(argv, { lacking = 'fail' } = {}) {
  const { labAccess, reexecInUserNamespace, whyNoLab } = await import('../../dist/privileges.js');
  const access = labAccess();
  if (access.kind === 'user-namespace') {
    // It must not outlive this process, however that ends.
    return reexecInUserNamespace(['setpriv', '--pdeathsig', 'KILL', '--', ...argv]);
  }
  if (access.kind === 'none') {
    if (lacking === 'fail') throw new Failure(whyNoLab(access));
    console.warn(`${whyNoLab(access)}\n`);
  }
  return runAloud(argv);
}
