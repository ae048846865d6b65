/** What nftables mode needs. All of it is spoken to by netlink: the program nft need not be there. */
import type { Family } from '../../model/ip.ts';
import type { Check } from '../prerequisites/check.ts';
import { conntrackCheck } from '../prerequisites/conntrackNetlink.ts';
import type { Machine } from '../prerequisites/machine.ts';
import { nftProgramChecks } from '../prerequisites/nftProgram.ts';
import { nftChecks } from '../prerequisites/nftables.ts';

export async function nftablesModeChecks(
  machine: Machine,
  families: readonly Family[],
): Promise<readonly Check[]> {
  return [
    ...(await nftChecks(machine, families)),
    await conntrackCheck(machine, families),
    ...(await nftProgramChecks(machine)),
  ];
}
