/**
 * How many rules a table of the legacy variant has and how they lie in memory, in one system call. It changes with
 * nearly every change of a rule, whoever makes it, and costs the same at any size. From linux/netfilter_ipv4/ip_tables.h.
 */
import type { Family } from '../../model/ip.ts';
import { libc, SOCK_CLOEXEC } from '../../system/libc.ts';
import { LITTLE_ENDIAN } from '../../netlink/codec.ts';
import { addressFamily } from '../../netlink/inet.ts';
import { type Table, TABLES } from './rules/rule.ts';
import { JunctionError } from '../../errors.ts';
import type { TransactionChannel } from '../../netlink/channel.ts';
import { decodeTable, getTables } from '../../netlink/nftables/objects.ts';
import { transaction } from '../../netlink/nftables/transaction.ts';

const SOCK_RAW = 3;
const IPPROTO_RAW = 255;
const IPPROTO_IP = 0;
const IPPROTO_IPV6 = 41;
const GET_INFO = 64;
const NAME_BYTES = 32;
/** Name, hooks, five entry points, five ends, the number of entries, the size. */
const INFO_BYTES = NAME_BYTES + 4 + 20 + 20 + 4 + 4;
const ENTRIES_OFFSET = INFO_BYTES - 8;

/**
 * Of all these tables together; `undefined` where the kernel does not tell. A rule that was replaced by another of the
 * same size is not seen.
 */
export function readTableInfo(
  family: Family,
  tables: readonly string[],
): { readonly id: string; readonly rules: number } | undefined {
  const { socket, close } = libc();
  const fd = socket(addressFamily(family), SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
  if (fd < 0) return undefined;
  try {
    const infos = tables.map((table) => readOne(fd, family, table));
    let rules = 0;
    for (const info of infos) {
      if (!info) return undefined;
      rules += new DataView(info.buffer).getUint32(ENTRIES_OFFSET, LITTLE_ENDIAN);
    }
    return { id: infos.map((info) => Buffer.from(info ?? []).toString('base64')).join(' '), rules };
  } finally {
    close(fd);
  }
}

function readOne(fd: number, family: Family, table: string): Uint8Array<ArrayBuffer> | undefined {
  const info = new Uint8Array(INFO_BYTES);
  info.set(Buffer.from(table));
  const length = new Uint8Array(new Uint32Array([INFO_BYTES]).buffer);
  const level = family === 'IPv4' ? IPPROTO_IP : IPPROTO_IPV6;
  return libc().getsockopt(fd, level, GET_INFO, info, length) === 0 ? info : undefined;
}

/*
 * Tables that another program made dormant (`nft add table ip nat { flags dormant; }`): packets do not come to their
 * chains any more. iptables-nft neither shows the flag nor clears it.
 */

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
