/** Reads rules by netlink: chains by family, rules by chain, sets by name, elements by key. Never a whole set. */
import { constants } from 'node:os';
import { JunctionError } from '../../../errors.ts';
import type { Family } from '../../../model/ip.ts';
import { messagesOf, type NetlinkChannel } from '../../../netlink/channel.ts';
import type { NetlinkReply } from '../../../netlink/request.ts';
import {
  decodeElements,
  getElement,
  type SetElement,
  type SetPlace,
} from '../../../netlink/nftables/elements.ts';
import { decodeGeneration, getGeneration, type TablePlace } from '../../../netlink/nftables/message.ts';
import {
  type ChainPlace,
  decodeChain,
  decodeRule,
  decodeSet,
  decodeTable,
  getChains,
  getRules,
  getSet,
  getSets,
  getTable,
  getTables,
} from '../../../netlink/nftables/objects.ts';
import { isAbsent, readSet } from '../client.ts';
import { NFT_FAMILY } from '../rules/print.ts';
import { groupBy } from '../rules/table.ts';
import type { AskedElement, ListedChain, ListedRule, ListedSet, NftSource, WholeTable } from './source.ts';

export class NetlinkSource implements NftSource {
  readonly #family: Family;
  readonly #channel: NetlinkChannel;

  constructor(family: Family, channel: NetlinkChannel) {
    this.#family = family;
    this.#channel = channel;
  }

  async generation(): Promise<number | undefined> {
    const reply = await this.#channel.request(getGeneration());
    return first(reply, decodeGeneration)?.id;
  }

  async chains(): Promise<readonly ListedChain[]> {
    const families = [NFT_FAMILY[this.#family], 'inet'] as const;
    const replies = await this.#channel.dumpAll(
      families.flatMap((family) => [getTables(family), getChains(family)]),
    );
    return families.flatMap((family, index) => {
      const tables = messagesOf(replies[2 * index], 'the tables').map(({ payload }) => decodeTable(payload));
      const dormant = new Set(tables.flatMap(({ isDormant, name }) => (isDormant ? [name] : [])));
      return messagesOf(replies[2 * index + 1], 'the chains')
        .map(({ payload }) => decodeChain(payload))
        .filter(({ table }) => !dormant.has(table))
        .map(({ table, name: chain, base, references }) => ({ family, table, chain, base, references }));
    });
  }

  async rules(place: ChainPlace): Promise<readonly ListedRule[]> {
    const [reply] = await this.#channel.dumpAll([getRules(place, place.chain)]);
    if (isAbsent(reply)) return []; // it was deleted meanwhile
    return messagesOf(reply, `the rules of chain ${place.chain}`).map(({ payload }) => decodeRule(payload));
  }

  async set(place: SetPlace): Promise<ListedSet | undefined> {
    return first(await this.#channel.request(getSet(place)), decodeSet);
  }

  async element(asked: AskedElement): Promise<SetElement | undefined> {
    const reply = await this.#channel.request(getElement(asked, asked.key));
    return first(reply, decodeElements)?.elements[0];
  }

  async table(place: TablePlace): Promise<WholeTable | undefined> {
    const table = first(await this.#channel.request(getTable(place)), decodeTable);
    if (!table) return undefined;
    const [chains, rules, sets] = await this.#channel.dumpAll([
      getChains(place.family),
      getRules(place),
      getSets(place),
    ]);
    const decoded = messagesOf(rules, 'the rules').map(({ payload }) => decodeRule(payload));
    const byChain = groupBy(decoded, ({ chain }) => chain);
    return {
      isDormant: table.isDormant,
      chains: messagesOf(chains, 'the chains')
        .map(({ payload }) => decodeChain(payload))
        .filter((chain) => chain.table === place.table)
        .map(({ name, base }) => ({ name, base, rules: byChain.get(name) ?? [] })),
      sets: messagesOf(sets, 'the sets').map(({ payload }) => decodeSet(payload)),
    };
  }

  async allElements(place: SetPlace): Promise<readonly SetElement[]> {
    return (await readSet(this.#channel, place)) ?? [];
  }
}

/** EINVAL: a kernel before 5.13 has no element that stands for all others. */
const ABSENT: ReadonlySet<number> = new Set([constants.errno.ENOENT, constants.errno.EINVAL]);

/** `undefined`: there is no such thing. */
function first<T>(reply: NetlinkReply, decode: (payload: Uint8Array) => T): T | undefined {
  if (reply.kind === 'answered') {
    const [message] = reply.messages;
    return message && decode(message.payload);
  }
  if (ABSENT.has(reply.errno)) return undefined;
  throw new JunctionError('NETLINK_FAILED', `netlink: cannot read the rules: ${reply.name}`);
}
