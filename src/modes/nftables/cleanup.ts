/** Finds and removes whole tables that an nftables mode left, ours or kube-proxy's, from nothing but the kernel's state. */
import { constants } from 'node:os';
import { BACKSTOP_TABLE, TABLE } from './rules/names.ts';
import { JunctionError } from '../../errors.ts';
import type { Family } from '../../model/ip.ts';
import type { NetlinkChannel, TransactionChannel } from '../../netlink/channel.ts';
import { decodeTable, getTables } from '../../netlink/nftables/objects.ts';
import { transaction } from '../../netlink/nftables/transaction.ts';

export const KUBE_PROXY_TABLE = 'kube-proxy';
/** What a check leaves that is killed in between. */
export const TRIAL_TABLE = 'junction-trial';
/** That one goes by itself. */
export const OWNED_TRIAL_TABLE = 'junction-trial-owned';
export const OWN_TABLES: readonly string[] = [TABLE, BACKSTOP_TABLE, TRIAL_TABLE];
export const EVERY_TABLE: readonly string[] = [...OWN_TABLES, KUBE_PROXY_TABLE];

export interface NftRemains {
  readonly family: 'ip' | 'ip6';
  readonly table: string;
  /** Sets, maps and chains in it. */
  readonly objects: number;
}

export async function findTables(
  channel: NetlinkChannel,
  families: readonly Family[],
  names: readonly string[],
): Promise<readonly NftRemains[]> {
  const found: NftRemains[] = [];
  for (const each of families) {
    const family = each === 'IPv4' ? 'ip' : 'ip6';
    const [reply] = await channel.dumpAll([getTables(family)]);
    if (reply?.kind === 'refused' && reply.errno === constants.errno.EPERM)
      throw new JunctionError('NETLINK_FAILED', `netlink: cannot list the tables of nftables: ${reply.name}`);
    if (reply?.kind !== 'answered') continue; // a kernel without nftables has no tables
    for (const { payload } of reply.messages) {
      const { name, objects, owner } = decodeTable(payload);
      // One that a running process owns is not left behind: it goes with that process.
      if (names.includes(name) && owner === undefined) found.push({ family, table: name, objects });
    }
  }
  return found;
}

/** Answers why it would not go; one that somebody else has removed meanwhile is gone too. */
export async function removeTable(
  channel: TransactionChannel,
  { family, table }: NftRemains,
): Promise<string | undefined> {
  const outcome = await channel.commit(transaction([{ kind: 'deleteTable', family, table }]));
  if (outcome.state === 'done') return undefined;
  const name = outcome.state === 'refused' ? outcome.refusals[0]?.name : outcome.state;
  return name === 'ENOENT' ? undefined : (name ?? 'refused');
}
