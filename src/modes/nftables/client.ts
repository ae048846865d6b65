/** Our tables of one family in the kernel: which are there, and whose they are; a transaction becomes one netlink batch. */
import { readFileSync } from 'node:fs';
import { attempt } from '../../errors.ts';
import type { Family } from '../../model/ip.ts';
import type { Protocol } from '../../model/objects.ts';
import { isAbsent, type NetlinkChannel } from '../../netlink/channel.ts';
import { decodeElements, getElements } from '../../netlink/nftables/elements.ts';
import type { SetElement } from '../../netlink/nftables/elements.ts';
import type { TablePlace } from '../../netlink/nftables/message.ts';
import { decodeChain, decodeTable, getChains, getTables } from '../../netlink/nftables/objects.ts';
import { type NftOperation, transaction as batchOf } from '../../netlink/nftables/transaction.ts';
import { NETLINK_NETFILTER } from '../../netlink/socket.ts';
import { holderOfSocket, printHolder } from '../../system/procfs.ts';
import { systemClock } from '../../time/systemClock.ts';
import { wait } from '../../time/wait.ts';
import { lowerRule } from './lower.ts';
import { affinitySet } from './rules/affinity.ts';
import { BACKSTOP_COMMENT, BACKSTOP_TABLE, isOurTable, TABLE_COMMENT } from './rules/names.ts';
import { NFT_FAMILY, printKey } from './rules/print.ts';
import type {
  AffinityEntry,
  FoundTable,
  NftClient,
  NftTables,
  TableOperation,
  TablePart,
  TransactionOutcome,
} from './rules/table.ts';
import { baseOf, elementReader, listOf, specOf } from './sets.ts';

/** What the kernel says, or a message ends with, when it is busy with another program's change. */
export const TRANSIENT = /\b(?:EINTR|EAGAIN|EBUSY|ENOBUFS|ERESTART|EMFILE)\b/;
const TRIES = 4;
const PAUSE_MS = 5;

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

  table(table: string): NftClient {
    return {
      commit: (transaction) => this.commit([{ table, transaction }]),
      affinityEntries: (protocol) => this.#affinityEntries(table, protocol),
    };
  }

  async commit(parts: readonly TablePart[]): Promise<TransactionOutcome> {
    const given = parts.flatMap(({ transaction }) => transaction);
    const batch = batchOf(
      parts.flatMap(({ table, transaction }) =>
        transaction.map((operation) => lowerOperation(operation, this.#family, table)),
      ),
    );
    for (let tries = 1; ; tries++) {
      const outcome = await this.#channel.commit(batch);
      if (outcome.state === 'done') return outcome;
      const [first] = outcome.refusals;
      const name = first?.name ?? 'refused';
      if (tries < TRIES && TRANSIENT.test(name)) {
        await wait(systemClock, PAUSE_MS * tries);
        continue;
      }
      const index = first?.operation;
      return { state: 'refused', name, operation: index === undefined ? undefined : given[index] };
    }
  }

  async #affinityEntries(table: string, protocol: Protocol): Promise<readonly AffinityEntry[]> {
    const set = affinitySet(protocol);
    const read = elementReader(set, this.#family);
    const request = getElements({ family: NFT_FAMILY[this.#family], table, set: set.name });
    /** While the set grows, some are listed twice. */
    const entries = new Map<string, AffinityEntry>();
    const take = (raw: SetElement): void => {
      const { key, endpoint } = read(raw) ?? {};
      const { address: client, secondAddress: destination, port } = key ?? {};
      if (!key || !client || !destination || port === undefined || !endpoint) return;
      const { timeoutMs = 0, expiresMs = timeoutMs } = raw;
      const lifetime = { timeoutMs, leftMs: Math.min(expiresMs, timeoutMs) };
      entries.set(printKey(key), { client, destination, port, endpoint, lifetime });
    };
    // Commits to other sets interrupt it; what packets add meanwhile, the kernel does not say. So it is not read again.
    const end = await this.#channel.scan(request, (messages) => {
      for (const { payload } of messages) decodeElements(payload).elements.forEach(take);
    });
    return isAbsent(end, 'the affinity entries') ? [] : [...entries.values()];
  }
}

function lowerOperation(operation: TableOperation, family: Family, table: string): NftOperation {
  const place: TablePlace = { family: NFT_FAMILY[family], table };
  switch (operation.kind) {
    case 'addTable':
      return { ...operation, ...place, comment: table === BACKSTOP_TABLE ? BACKSTOP_COMMENT : TABLE_COMMENT };
    case 'addSet':
      return { ...operation, ...place, set: specOf(operation.set, family) };
    case 'addChain': {
      const { kind, chain, hook } = operation;
      return { kind, ...place, chain, ...(hook && { base: baseOf(hook) }) };
    }
    case 'addRule': {
      const { kind, chain, rule } = operation;
      return { kind, ...place, chain, expressions: lowerRule(rule, family) };
    }
    case 'addElements':
    case 'deleteElements': {
      const { kind, set } = operation;
      const elements = listOf(set, operation.elements, kind === 'deleteElements');
      return { kind, ...place, set: set.name, elements };
    }
    default:
      return { ...operation, ...place };
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
