/**
 * Chains of a kernel, read one by one as a packet comes to them.
 *
 * The nft variant fetches one chain in 5 ms whatever else the table has (iptables 1.8.9, 30,000 services). Legacy's
 * kernel gives whole tables only, so there a table is read once a round, and of it the chains that are asked for are kept.
 */
import type { IptablesClient } from './client.ts';
import { isServiceChain } from './rules/names.ts';
import { type ChainListing, ListReader, TableReader } from './rules/listing.ts';

/** `nat KUBE-SERVICES` */
export type ChainKey = `${string} ${string}`;

export interface ChainSource {
  read(keys: readonly ChainKey[]): Promise<ReadonlyMap<ChainKey, ChainListing>>;
}

type ReadingClient = Pick<IptablesClient, 'variant' | 'readChain' | 'readTable'>;

/** At a time: each is a process. */
const AT_ONCE = 4;
/** So many processes take as long as one that prints the whole table of a large cluster. */
const MOST_SINGLE_READS = 300;
/** A chain of legacy that nobody asked for yet is kept while all of them have less than this: most clusters are read once. */
const KEPT_CHARACTERS = 16 << 20;

/** `note`: what iptables says of a chain that it cannot list. */
export function chainSource(client: ReadingClient, note: (text: string) => void): ChainSource {
  return client.variant === 'nft' ? new SingleChains(client, note) : new WholeTables(client);
}

class SingleChains implements ChainSource {
  readonly #client: ReadingClient;
  readonly #note: (text: string) => void;

  constructor(client: ReadingClient, note: (text: string) => void) {
    this.#client = client;
    this.#note = note;
  }

  async read(keys: readonly ChainKey[]): Promise<ReadonlyMap<ChainKey, ChainListing>> {
    if (keys.length > MOST_SINGLE_READS) return new WholeTables(this.#client).read(keys);
    const found = new Map<ChainKey, ChainListing>();
    const waiting = [...keys];
    const readNext = async (): Promise<void> => {
      for (let key = waiting.pop(); key !== undefined; key = waiting.pop()) {
        const chain = await this.#readOne(key);
        if (chain) found.set(key, chain);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, readNext));
    return found;
  }

  async #readOne(key: ChainKey): Promise<ChainListing | undefined> {
    const [table, chain] = partsOf(key);
    const reader = new ListReader(chain);
    const reason = await this.#client.readChain(table, chain, async (text) => reader.take(text));
    if (reason === undefined) return reader.chain;
    // The same text for a chain that is not there, and for one with rules that iptables cannot print.
    if (reason.includes('incompatible')) this.#note(reason);
    return undefined;
  }
}

class WholeTables implements ChainSource {
  readonly #client: ReadingClient;
  /** Read, and kept whole. */
  readonly #whole = new Map<string, ReadonlyMap<string, ChainListing>>();

  constructor(client: ReadingClient) {
    this.#client = client;
  }

  async read(keys: readonly ChainKey[]): Promise<ReadonlyMap<ChainKey, ChainListing>> {
    const wanted = new Map<string, Set<string>>();
    for (const key of keys) {
      const [table, chain] = partsOf(key);
      wanted.set(table, (wanted.get(table) ?? new Set()).add(chain));
    }
    const found = new Map<ChainKey, ChainListing>();
    for (const [table, names] of wanted) {
      const chains = this.#whole.get(table) ?? (await this.#readTable(table, names));
      for (const name of names) {
        const chain = chains.get(name);
        if (chain) found.set(`${table} ${name}`, chain);
      }
    }
    return found;
  }

  async #readTable(table: string, names: ReadonlySet<string>): Promise<ReadonlyMap<string, ChainListing>> {
    let characters = 0;
    let isWhole = true;
    const reader = new TableReader();
    await this.#client.readTable(table, async (text) => {
      characters += text.length;
      if (isWhole && characters > KEPT_CHARACTERS) {
        isWhole = false;
        reader.keepOnly((chain) => names.has(chain) || !isServiceChain(chain));
      }
      reader.take(text);
    });
    if (isWhole) this.#whole.set(table, reader.chains);
    return reader.chains;
  }
}

function partsOf(key: ChainKey): readonly [table: string, chain: string] {
  const space = key.indexOf(' ');
  return [key.slice(0, space), key.slice(space + 1)];
}
