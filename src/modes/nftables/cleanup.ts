/** Finds and removes whole tables that an nftables mode left, ours or kube-proxy's, from nothing but the kernel's state. */
import { isOurTable, OUR_TABLES } from './rules/names.ts';
import { NFT_FAMILY } from './rules/print.ts';
import { FAMILIES, type Family } from '../../model/ip.ts';
import type { NetlinkChannel } from '../../netlink/channel.ts';
import { decodeTable, getTables } from '../../netlink/nftables/objects.ts';
import { transaction } from '../../netlink/nftables/transaction.ts';
import { NETLINK_NETFILTER } from '../../netlink/socket.ts';
import { withChannel } from '../../netlink/sockets.ts';
import type { Log } from '../../log/log.ts';

export const KUBE_PROXY_TABLE = 'kube-proxy';
/** What a check leaves that is killed in between. */
export const TRIAL_TABLE = 'junction-trial';
export const OWN_TABLES: readonly string[] = [...OUR_TABLES, TRIAL_TABLE];
export const EVERY_TABLE: readonly string[] = [...OWN_TABLES, KUBE_PROXY_TABLE];

export interface StaleTable {
  readonly family: 'ip' | 'ip6';
  readonly table: string;
  /** Sets, maps and chains in it. */
  readonly objects: number;
}

interface FoundTables {
  /** Those that no running process owns: an owned one is deleted with its process. */
  readonly stale: readonly StaleTable[];
  /** A Junction owns one of its tables, so it runs. */
  readonly isJunctionRunning: boolean;
}

export async function findTables(
  channel: NetlinkChannel,
  families: readonly Family[],
  names: readonly string[],
): Promise<FoundTables> {
  const stale: StaleTable[] = [];
  let isJunctionRunning = false;
  for (const each of families) {
    const family = NFT_FAMILY[each];
    for (const { name, objects, owner } of await channel.list(
      getTables(family),
      'the tables of nftables',
      decodeTable,
    )) {
      if (owner !== undefined) isJunctionRunning ||= isOurTable(name);
      else if (names.includes(name)) stale.push({ family, table: name, objects });
    }
  }
  return { stale, isJunctionRunning };
}

/** Returns why it cannot be deleted; one that another program has deleted meanwhile needs no more. */
export async function removeTable(
  channel: NetlinkChannel,
  { family, table }: StaleTable,
): Promise<string | undefined> {
  const outcome = await channel.commit(transaction([{ kind: 'deleteTable', family, table }]));
  if (outcome.state === 'done') return undefined;
  const name = outcome.refusals[0]?.name ?? 'refused';
  return name === 'ENOENT' ? undefined : name;
}

/** For a node that was switched from an nftables mode, once the new rules work. Nothing that fails here may stop the proxy. */
export function removeStaleTables(log: Log): Promise<void> {
  return withChannel(NETLINK_NETFILTER, (channel) => removeTables(channel, log, EVERY_TABLE)).catch(
    (error: unknown) => logFailure(log, error),
  );
}

/** The same by the channel that the nftables mode writes with. */
export async function removeKubeProxyTables(channel: NetlinkChannel, log: Log): Promise<void> {
  try {
    await removeTables(channel, log, [KUBE_PROXY_TABLE]);
  } catch (error) {
    logFailure(log, error);
  }
}

async function removeTables(channel: NetlinkChannel, log: Log, names: readonly string[]): Promise<void> {
  for (const each of (await findTables(channel, FAMILIES, names)).stale) {
    const { family, table } = each;
    const why = await removeTable(channel, each);
    if (why === undefined) log.info('Removed the table that an nftables mode left', { family, table });
    else log.warn('Cannot remove the table that an nftables mode left', { family, table, why });
  }
}

function logFailure(log: Log, error: unknown): void {
  log.warn('Cannot look for tables that an nftables mode left', { err: error, whatToDo: 'junction cleanup' });
}
