/** The part of `junction cleanup` that an nftables mode left, ours or kube-proxy's: whole tables. */
import { directChannel } from '../kernel/netlink/channel.ts';
import { NETLINK_NETFILTER, NetlinkSocket } from '../kernel/netlink/socket.ts';
import { EVERY_TABLE, findTables, type NftRemains, removeTable } from '../kernel/nftables/cleanup.ts';
import type { TransactionChannel } from '../kernel/netlink/channel.ts';
import type { Family } from '../model/ip.ts';
import { printTable } from './table.ts';

export interface NftCleanup {
  readonly tables: readonly NftRemains[];
  /** What the kernel would not let go of. */
  readonly failures: readonly string[];
}

export async function cleanupNft(families: readonly Family[], dryRun: boolean): Promise<NftCleanup> {
  const socket = NetlinkSocket.open(NETLINK_NETFILTER);
  try {
    return await cleanTables(directChannel(socket), families, dryRun);
  } finally {
    socket.close();
  }
}

export async function cleanTables(
  channel: TransactionChannel,
  families: readonly Family[],
  dryRun: boolean,
): Promise<NftCleanup> {
  const tables = await findTables(channel, families, EVERY_TABLE);
  const failures: string[] = [];
  for (const each of dryRun ? [] : tables) {
    const why = await removeTable(channel, each);
    if (why !== undefined) failures.push(`table ${each.family} ${each.table}: ${why}`);
  }
  return { tables, failures };
}

export function printNftCleanup({ tables, failures }: NftCleanup, dryRun: boolean): string {
  const rows = tables.map(({ family, table, objects }) => [family, table, String(objects)]);
  const kept = failures.map((failure) => `Could not remove ${failure}\n`).join('');
  if (rows.length === 0) return kept;
  const title = dryRun ? 'Would remove of nftables:\n' : 'Removed of nftables:\n';
  return title + printTable(['FAMILY', 'TABLE', 'SETS, MAPS AND CHAINS'], rows) + kept;
}
