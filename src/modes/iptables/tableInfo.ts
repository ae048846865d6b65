/**
 * Tables that another program made dormant (`nft add table ip nat { flags dormant; }`): packets do not come to their
 * chains any more. iptables-nft neither shows the flag nor clears it.
 */
import { JunctionError } from '../../errors.ts';
import type { Family } from '../../model/ip.ts';
import type { TransactionChannel } from '../../netlink/channel.ts';
import { decodeTable, getTables } from '../../netlink/nftables/objects.ts';
import { transaction } from '../../netlink/nftables/transaction.ts';
import { type Table, TABLES } from './rules/rule.ts';

/** Clears the flag; returns the tables that had it. */
export async function wakeTables(channel: TransactionChannel, family: Family): Promise<readonly Table[]> {
  const nftFamily = family === 'IPv4' ? 'ip' : 'ip6';
  const [reply] = await channel.dumpAll([getTables(nftFamily)]);
  if (reply?.kind !== 'answered') return []; // a kernel without nftables has no such tables
  const dormant = new Set(
    reply.messages
      .map(({ payload }) => decodeTable(payload))
      .flatMap((each) => (each.isDormant ? each.name : [])),
  );
  const found = TABLES.filter((table) => dormant.has(table));
  for (const table of found) {
    const outcome = await channel.commit(transaction([{ kind: 'addTable', family: nftFamily, table }]));
    if (outcome.state === 'done') continue;
    const name = outcome.state === 'refused' ? outcome.refusals[0]?.name : outcome.state;
    throw new JunctionError(
      'NETLINK_FAILED',
      `the table ${nftFamily} ${table} is dormant, and the kernel refuses to wake it: ${name ?? 'refused'}`,
      { hint: `Clear the flag by hand: nft add table ${nftFamily} ${table}` },
    );
  }
  return found;
}
