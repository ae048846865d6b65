/** What keeps other programs from changing our table. */
import { NFT_FAMILY } from './rules/print.ts';
import type { Family } from '../../model/ip.ts';
import type { NetlinkChannel } from '../../netlink/channel.ts';
import { transaction } from '../../netlink/nftables/transaction.ts';
import { TRIAL_TABLE } from './cleanup.ts';

/** `owned`: the kernel refuses their changes. `backstop`: ours is repaired, and a table behind it holds connections meanwhile. */
export type Protection = 'owned' | 'backstop' | 'none';

export async function chooseProtection(
  setting: string,
  channel: NetlinkChannel,
  families: readonly Family[],
): Promise<Protection> {
  if (setting === 'backstop' || setting === 'none') return setting;
  for (const family of families) if (!(await canBeOwned(channel, family))) return 'backstop';
  return 'owned';
}

/** Whether a table can be owned and outlive its owner: since Linux 6.9. Older kernels answer EOPNOTSUPP or EINVAL. */
async function canBeOwned(channel: NetlinkChannel, family: Family): Promise<boolean> {
  const place = { family: NFT_FAMILY[family], table: TRIAL_TABLE };
  // A kernel without nf_tables for the family refuses any table; and another may have been left by a check that was killed.
  for (const flags of [{}, { isOwned: true, isPersistent: true }]) {
    const operations = [
      { kind: 'addTable', ...place, ...flags },
      { kind: 'deleteTable', ...place },
    ] as const;
    if ((await channel.commit(transaction(operations))).state !== 'done') return false;
  }
  return true;
}
