/** The table of flows, out of which stale ones are taken. */
import type { Family } from '../../model/ip.ts';
import { absent, type Check, present } from './check.ts';
import type { Machine } from './machine.ts';
import { moduleRemedy, tryWithModule } from './modules.ts';

const MODULE = 'nf_conntrack_netlink';
const SUBJECT = `kernel module ${MODULE}`;
const NEED = 'for forgetting UDP and SCTP flows to endpoints that are gone';

export async function conntrackCheck(machine: Machine, families: readonly Family[]): Promise<Check> {
  for (const family of families) {
    const trial = await tryWithModule(machine, MODULE, () => machine.tryConntrack(family));
    if (trial.state === 'refused') {
      return absent(
        SUBJECT,
        NEED,
        `the table of flows cannot be read (${family}): ${trial.reason}`,
        moduleRemedy(machine, [MODULE]),
      );
    }
  }
  return present(SUBJECT, NEED, 'the table of flows can be read');
}
