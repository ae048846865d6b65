/** Reads rules by netlink: chains by family, rules by chain, sets by name, elements by key. Never a whole set. */
import { constants } from 'node:os';
import { JunctionError } from '../../../errors.ts';
import type { Family } from '../../../model/ip.ts';
import { messagesOf, type NetlinkChannel } from '../../../netlink/channel.ts';
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
import type { NetlinkReply } from '../../../netlink/socket.ts';
import { isAbsent, readSet } from '../client.ts';
import { NFT_FAMILY } from '../rules/print.ts';
import { groupBy } from '../rules/table.ts';
import type {
  AskedElement,
  ListedChain,
  ListedRule,
  ListedSet,
  NftSource,
  TableContents,
  WholeTable,
} from './source.ts';

/** Takes the thread about two milliseconds: a commit of a sync waits no longer for a question. */
const KEYS_AT_ONCE = 128;

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

  async rules(chains: readonly ChainPlace[]): Promise<readonly (readonly ListedRule[])[]> {
    const replies = await this.#channel.dumpAll(chains.map((place) => getRules(place, place.chain)));
    return replies.map((reply, index) => {
      if (isAbsent(reply)) return []; // it was deleted meanwhile
      return messagesOf(reply, `the rules of chain ${chains[index]?.chain}`).map(({ payload }) =>
        decodeRule(payload),
      );
    });
  }

  async sets(places: readonly SetPlace[]): Promise<readonly (ListedSet | undefined)[]> {
    const replies = await this.#channel.requestAll(places.map(getSet));
    return replies.map((reply) => first(reply, decodeSet));
  }

  async elements(asked: readonly AskedElement[]): Promise<readonly (SetElement | undefined)[]> {
    const found: (SetElement | undefined)[] = [];
    for (let from = 0; from < asked.length; from += KEYS_AT_ONCE) {
      const requests = asked.slice(from, from + KEYS_AT_ONCE).map((each) => getElement(each, each.key));
      for (const reply of await this.#channel.requestAll(requests))
        found.push(first(reply, decodeElements)?.elements[0]);
    }
    return found;
  }

  async table(place: TablePlace): Promise<WholeTable | undefined> {
    const [reply, [chains], { rules, sets }] = await Promise.all([
      this.#channel.request(getTable(place)),
      this.#channel.dumpAll([getChains(place.family)]),
      this.contents(place),
    ]);
    const table = first(reply, decodeTable);
    if (!table) return undefined;
    return {
      isDormant: table.isDormant,
      chains: messagesOf(chains, 'the chains')
        .map(({ payload }) => decodeChain(payload))
        .filter((chain) => chain.table === place.table)
        .map(({ name, base }) => ({ name, base, rules: rules.get(name) ?? [] })),
      sets,
    };
  }

  async contents(place: TablePlace): Promise<TableContents> {
    const [sets, rules] = await this.#channel.dumpAll([getSets(place), getRules(place)]);
    if (isAbsent(sets)) return { rules: new Map(), sets: [] };
    const decoded = messagesOf(rules, 'the rules').map(({ payload }) => decodeRule(payload));
    return {
      rules: groupBy(decoded, ({ chain }) => chain),
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
