/** Where rules are read from: the kernel by netlink, or tables in memory, as a dump has them. */
import type { Family } from '../../../model/ip.ts';
import type { NetlinkChannel } from '../../../netlink/channel.ts';
import {
  decodeElements,
  getElement,
  readElements,
  type SetElement,
  type SetPlace,
} from '../../../netlink/nftables/elements.ts';
import { type Expression, wordsOf } from '../../../netlink/nftables/expressions.ts';
import {
  decodeGeneration,
  getGeneration,
  type NftFamily,
  type TablePlace,
} from '../../../netlink/nftables/message.ts';
import {
  type BaseChain,
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
import type { SetProperties } from '../../../netlink/nftables/setSpec.ts';
import { NFT_FAMILY } from '../rules/print.ts';
import { groupBy } from '../rules/table.ts';

export interface ListedChain extends ChainPlace {
  readonly base?: BaseChain | undefined;
  /** Its rules, and the rules and elements that lead to it. */
  readonly references: number;
}

export interface ListedRule {
  readonly expressions: readonly Expression[];
}

export interface ListedSet extends SetProperties {
  readonly name: string;
}

/** A chain with its rules. */
export interface WholeChain {
  readonly name: string;
  readonly base?: BaseChain | undefined;
  readonly rules: readonly ListedRule[];
}

/** All of a table but the elements of its sets. */
export interface WholeTable {
  readonly isDormant: boolean;
  readonly chains: readonly WholeChain[];
  readonly sets: readonly ListedSet[];
}

export interface NftSource {
  /** Another number after every change of any rule. `undefined`: nothing can change. */
  generation(): Promise<number | undefined>;
  /** Of the tables that are in force: those of this family, and those of `inet`. */
  chains(): Promise<readonly ListedChain[]>;
  /** Of a chain that is not there, none. */
  rules(chain: ChainPlace): Promise<readonly ListedRule[]>;
  set(place: SetPlace): Promise<ListedSet | undefined>;
  /** Of intervals, that which holds the key; by an empty key, that which stands for all others. */
  element(place: SetPlace, key: Uint8Array): Promise<SetElement | undefined>;
  /** `undefined`: there is no such table. */
  table(place: TablePlace): Promise<WholeTable | undefined>;
  /** All elements of a set that is there. */
  allElements(place: SetPlace): Promise<readonly SetElement[]>;
}

/** `ip junction-a` */
export function tableName({ family, table }: TablePlace): string {
  return `${family} ${table}`;
}

/** Reads chains by family, rules by chain, sets by name, elements by key. For a walk, never a whole set. */
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
  element(place: SetPlace, key: Uint8Array): Promise<SetElement | undefined> {
    return this.#channel.get(
      getElement(place, key),
      `an element of ${place.set}`,
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

export interface MemorySet extends ListedSet {
  readonly elements: readonly SetElement[];
}

export interface MemoryTable extends TablePlace, WholeTable {
  readonly sets: readonly MemorySet[];
}

const NFT_SET_INTERVAL = 0x4;
const WORD_BYTES = 4;

export class MemorySource implements NftSource {
  readonly #tables: readonly MemoryTable[];
  readonly #chains = new Map<string, WholeChain>();
  readonly #sets = new Map<string, IndexedSet>();

  constructor(tables: readonly MemoryTable[]) {
    this.#tables = tables;
    for (const table of tables) {
      const name = tableName(table);
      for (const chain of table.chains) this.#chains.set(`${name} ${chain.name}`, chain);
      for (const set of table.sets) this.#sets.set(`${name} ${set.name}`, new IndexedSet(set));
    }
  }

  async generation(): Promise<undefined> {
    return undefined;
  }

  async chains(): Promise<readonly ListedChain[]> {
    const inForce = this.#tables.filter(({ isDormant }) => !isDormant);
    return inForce.flatMap(({ family, table, chains }) =>
      chains.map(({ name: chain, base, rules }) => ({
        family,
        table,
        chain,
        base,
        references: rules.length,
      })),
    );
  }

  async rules(place: ChainPlace): Promise<readonly ListedRule[]> {
    return this.#chains.get(`${tableName(place)} ${place.chain}`)?.rules ?? [];
  }

  async set(place: SetPlace): Promise<ListedSet | undefined> {
    return this.#sets.get(`${tableName(place)} ${place.set}`)?.set;
  }

  async element(place: SetPlace, key: Uint8Array): Promise<SetElement | undefined> {
    return this.#sets.get(`${tableName(place)} ${place.set}`)?.find(key);
  }

  async table(place: TablePlace): Promise<WholeTable | undefined> {
    return this.#tables.find((each) => tableName(each) === tableName(place));
  }

  async allElements(place: SetPlace): Promise<readonly SetElement[]> {
    return this.#sets.get(`${tableName(place)} ${place.set}`)?.set.elements ?? [];
  }
}

class IndexedSet {
  readonly set: MemorySet;
  readonly #byKey = new Map<string, SetElement>();
  /** Of intervals: both ends, by where they are. */
  readonly #ends: readonly SetElement[];
  /** Stands for all keys that have no element. */
  readonly #catchAll: SetElement | undefined;

  constructor(set: MemorySet) {
    this.set = set;
    const isInterval = (set.flags & NFT_SET_INTERVAL) !== 0;
    const isConcatenation = set.description.fields !== undefined;
    const others = set.elements.filter(({ key }) => key.length > 0);
    this.#ends = isInterval && !isConcatenation ? others.sort(byPlace) : [];
    this.#catchAll = set.elements.find(({ key }) => key.length === 0);
    if (!isInterval) for (const element of others) this.#byKey.set(hex(element.key), element);
  }

  find(key: Uint8Array): SetElement | undefined {
    if (key.length === 0) return this.#catchAll;
    const { fields } = this.set.description;
    if (fields)
      return this.set.elements.find((element) => element.key.length > 0 && holdsFields(element, key, fields));
    if (this.#ends.length === 0) return this.#byKey.get(hex(key));
    const last = this.#ends.findLast((element) => Buffer.compare(element.key, key) <= 0);
    return last?.isIntervalEnd ? undefined : last;
  }
}

/** Where one interval ends, the next may begin. */
function byPlace(a: SetElement, b: SetElement): number {
  return Buffer.compare(a.key, b.key) || Number(b.isIntervalEnd ?? 0) - Number(a.isIntervalEnd ?? 0);
}

function holdsFields(
  { key: first, keyEnd: last = first }: SetElement,
  key: Uint8Array,
  fields: readonly { readonly bytes: number }[],
): boolean {
  let at = 0;
  for (const { bytes } of fields) {
    const [value, low, high] = [key, first, last].map((each) => each.subarray(at, at + bytes));
    if (!value || !low || !high) return false;
    if (Buffer.compare(value, low) < 0 || Buffer.compare(value, high) > 0) return false;
    at += wordsOf(bytes) * WORD_BYTES;
  }
  return true;
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}
