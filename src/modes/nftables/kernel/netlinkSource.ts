/** Reads rules by netlink: chains by family, rules by chain, sets by name, elements by key. Never a whole set. */
import type { Family } from '../../../model/ip.ts';
import type { NetlinkChannel } from '../../../netlink/channel.ts';
import {
  decodeElements,
  getElement,
  readElements,
  type SetElement,
  type SetPlace,
} from '../../../netlink/nftables/elements.ts';
import {
  decodeGeneration,
  getGeneration,
  type NftFamily,
  type TablePlace,
} from '../../../netlink/nftables/message.ts';
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
    return (await this.#channel.get(getGeneration(), 'the generation', decodeGeneration))?.id;
  }

  async chains(): Promise<readonly ListedChain[]> {
    const all: ListedChain[] = [];
    for (const family of [NFT_FAMILY[this.#family], 'inet'] as const) {
      const tables = await this.#channel.list(getTables(family), 'the tables', decodeTable);
      const dormant = new Set(tables.flatMap(({ isDormant, name }) => (isDormant ? [name] : [])));
      for (const { table, name: chain, base, references } of await this.#chains(family))
        if (!dormant.has(table)) all.push({ family, table, chain, base, references });
    }
    return all;
  }

  #chains(family: NftFamily): Promise<readonly ReturnType<typeof decodeChain>[]> {
    return this.#channel.list(getChains(family), 'the chains', decodeChain);
  }

  rules(place: ChainPlace): Promise<readonly ListedRule[]> {
    return this.#channel.list(getRules(place, place.chain), `the rules of chain ${place.chain}`, decodeRule);
  }

  set(place: SetPlace): Promise<ListedSet | undefined> {
    return this.#channel.get(getSet(place), `the set ${place.set}`, decodeSet);
  }

  /** A kernel before 5.13 has no element that stands for all others. */
  element(asked: AskedElement): Promise<SetElement | undefined> {
    return this.#channel.get(
      getElement(asked, asked.key),
      `an element of ${asked.set}`,
      (payload) => decodeElements(payload).elements[0],
    );
  }

  async table(place: TablePlace): Promise<WholeTable | undefined> {
    const table = await this.#channel.get(getTable(place), `the table ${place.table}`, decodeTable);
    if (!table) return undefined;
    const chains = await this.#chains(place.family);
    const rules = await this.#channel.list(getRules(place), 'the rules', decodeRule);
    const byChain = groupBy(rules, ({ chain }) => chain);
    return {
      isDormant: table.isDormant,
      chains: chains
        .filter((chain) => chain.table === place.table)
        .map(({ name, base }) => ({ name, base, rules: byChain.get(name) ?? [] })),
      sets: await this.#channel.list(getSets(place), 'the sets', decodeSet),
    };
  }

  allElements(place: SetPlace): Promise<readonly SetElement[]> {
    return readElements(this.#channel, place);
  }
}
