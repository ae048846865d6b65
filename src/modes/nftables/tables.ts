/** Our tables of one family: which are there, whose they are, and changes of several at once. */
import { readFileSync } from 'node:fs';
import { attempt } from '../../errors.ts';
import type { Family } from '../../model/ip.ts';
import type { NetlinkChannel } from '../../netlink/channel.ts';
import type { NftOperation } from '../../netlink/nftables/transaction.ts';
import { decodeChain, decodeTable, getChains, getTables } from '../../netlink/nftables/objects.ts';
import { NETLINK_NETFILTER } from '../../netlink/socket.ts';
import { holderOfSocket, printHolder } from '../../system/procfs.ts';
import { commitBatch, NetlinkNftClient } from './client.ts';
import { isOurTable } from './rules/names.ts';
import { NFT_FAMILY } from './rules/print.ts';
import type { FoundTable, NftTables, TableOperation, TransactionOutcome } from './rules/table.ts';

export class NetlinkNftTables implements NftTables {
  readonly #family: Family;
  readonly #channel: NetlinkChannel;

  constructor(family: Family, channel: NetlinkChannel) {
    this.#family = family;
    this.#channel = channel;
  }

  async list(): Promise<readonly FoundTable[]> {
    const family = NFT_FAMILY[this.#family];
    const tables = await this.#channel.list(getTables(family), 'the tables of nftables', decodeTable);
    const chains = await this.#channel.list(getChains(family), 'the chains of nftables', decodeChain);
    const base = chains.filter(({ isBase }) => isBase);
    return tables
      .filter(({ name }) => isOurTable(name))
      .map(({ name, owner }) => ({
        name,
        baseChains: base.filter(({ table }) => table === name).map((chain) => chain.name),
        owner: () => (owner === undefined ? undefined : printHolder(holderOfPort(owner))),
      }));
  }

  table(name: string): NetlinkNftClient {
    return new NetlinkNftClient(this.#family, this.#channel, name);
  }

  async commit(parts: Parameters<NftTables['commit']>[0]): Promise<TransactionOutcome> {
    const operations: NftOperation[] = [];
    const given: TableOperation[] = [];
    for (const { table, transaction } of parts) {
      const lowered = await this.table(table).lower(transaction);
      if (lowered.state === 'refused') return lowered;
      operations.push(...lowered.operations);
      given.push(...transaction);
    }
    return commitBatch(this.#channel, operations, given);
  }
}

/** The process of a netfilter socket, by the number that the kernel names the owner of a table by. */
function holderOfPort(port: number): ReturnType<typeof holderOfSocket> {
  for (const line of (attempt(() => readFileSync('/proc/net/netlink', 'utf8')) ?? '').split('\n')) {
    const [, protocol, portId, , , , , , , inode] = line.trim().split(/\s+/);
    if (Number(protocol) === NETLINK_NETFILTER && Number(portId) === port && inode !== undefined)
      return holderOfSocket(inode);
  }
  return undefined;
}
