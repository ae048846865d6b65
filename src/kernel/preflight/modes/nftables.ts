/** What nftables mode needs. All of it is spoken to by netlink: the program nft need not be there. */
import type { Family } from '../../../model/ip.ts';
import type { Check } from '../check.ts';
import { conntrackCheck } from '../conntrackNetlink.ts';
import type { Machine } from '../machine.ts';
import { nftProgramChecks } from '../nftProgram.ts';
import { nftChecks } from '../nftables.ts';

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
