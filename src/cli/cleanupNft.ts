/** The part of `junction cleanup` that an nftables mode left, ours or kube-proxy's: whole tables. */
import { BACKSTOP_TABLE } from '../modes/nftables/rules/names.ts';
import { directChannel } from '../netlink/channel.ts';
import { decodeTable, getTables } from '../netlink/nftables/table.ts';
import { NETLINK_NETFILTER, NetlinkSocket } from '../netlink/socket.ts';
import { EVERY_TABLE, findTables, type NftRemains, removeTable } from '../modes/nftables/cleanup.ts';
import type { NetlinkChannel, TransactionChannel } from '../netlink/channel.ts';
import type { Family } from '../model/ip.ts';
import { printTable } from './table.ts';

export interface NftCleanup {
  readonly tables: readonly NftRemains[];
  /** What the kernel would not let go of. */
  readonly failures: readonly string[];
  /** A Junction owns a backstop, so it lives, and mends what is removed. */
  readonly junctionIsRunning: boolean;
}

export async function cleanupNft(
  families: readonly Family[],
  dryRun: boolean,
  names: readonly string[] = EVERY_TABLE,
): Promise<NftCleanup> {
  const socket = NetlinkSocket.open(NETLINK_NETFILTER);
  try {
    return await cleanTables(directChannel(socket), families, dryRun, names);
  } finally {
    socket.close();
  }
}

export async function cleanTables(
  channel: TransactionChannel,
  families: readonly Family[],
  dryRun: boolean,
  names: readonly string[] = EVERY_TABLE,
): Promise<NftCleanup> {
  const tables = await findTables(channel, families, names);
  const junctionIsRunning = await isBackstopOwned(channel, families);
  const failures: string[] = [];
  for (const each of dryRun ? [] : tables) {
    const why = await removeTable(channel, each);
    if (why !== undefined) failures.push(`table ${each.family} ${each.table}: ${why}`);
  }
  return { tables, failures, junctionIsRunning };
}

async function isBackstopOwned(channel: NetlinkChannel, families: readonly Family[]): Promise<boolean> {
  const replies = await channel.dumpAll(
    families.map((family) => getTables(family === 'IPv4' ? 'ip' : 'ip6')),
  );
  return replies
    .flatMap((reply) => (reply.kind === 'answered' ? reply.messages : []))
    .map(({ payload }) => decodeTable(payload))
    .some(({ name, owner }) => name === BACKSTOP_TABLE && owner !== undefined);
}

export function printNftCleanup(
  { tables, failures, junctionIsRunning }: NftCleanup,
  dryRun: boolean,
): string {
  const rows = tables.map(({ family, table, objects }) => [family, table, String(objects)]);
  const kept = failures.map((failure) => `Could not remove ${failure}\n`).join('');
  const rest = junctionIsRunning ? `${kept}${RUNNING}` : kept;
  if (rows.length === 0) return rest;
  const title = dryRun ? 'Would remove of nftables:\n' : 'Removed of nftables:\n';
  return title + printTable(['FAMILY', 'TABLE', 'SETS, MAPS AND CHAINS'], rows) + rest;
}

const RUNNING = 'A Junction is running here and will write its tables again: stop it first.\n';
