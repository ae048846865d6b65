/**
 * Chains of a kernel, read as a packet comes to them.
 *
 * The nft variant lists one chain in 5 ms whatever else the table has (iptables 1.8.9, 30,000 services), and a small table
 * as quickly. Legacy's kernel gives whole tables only: there a table is read once a round, and the chains that were asked
 * for are kept.
 */
import { systemClock } from '../../time/systemClock.ts';
import type { IptablesClient } from './client.ts';
import { isServiceChain } from './rules/names.ts';
import { type ChainListing, ListReader, TableReader } from './rules/listing.ts';

/** `nat KUBE-SERVICES` */
export type ChainKey = `${string} ${string}`;
type Chains = ReadonlyMap<ChainKey, ChainListing>;

export type ReadingClient = Pick<IptablesClient, 'family' | 'variant' | 'listRules' | 'readTable'>;

interface Listed {
  readonly chains: Chains;
  /** What iptables says of it, where it cannot list it. */
  readonly unreadable?: string;
}

export interface ReadContext {
  /** Tables that are listed as a whole. */
  readonly small: ReadonlySet<string>;
  /** Changes with every change of the rules. */
  readonly generation: number | string | undefined;
  /** Called with what iptables says of what it cannot list. */
  readonly note: (text: string) => void;
}

/** At a time, of all questions: each is a process. */
const AT_ONCE = 4;
/** So many processes take as long as one that prints the whole table of a large cluster. */
const MOST_SINGLE_READS = 300;
/** A chain of legacy that nobody asked for yet is kept while all of them have less than this: most clusters are read once. */
const KEPT_CHARACTERS = 16 << 20;
/**
 * KUBE-SERVICES of 30,000 services takes half a second, nearly all of it in the kernel. A question about a service sends
 * several packets there: they share one read, until a rule changes or it is this old.
 */
const LARGE_CHAIN = 2000;
const LARGE_CHAIN_MS = 2000;

export class ChainSource {
  readonly #client: ReadingClient;
  readonly #large = new LargeChains();
  readonly #reading = new Map<string, Promise<Listed>>();
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(client: ReadingClient) {
    this.#client = client;
  }

  async read(keys: readonly ChainKey[], context: ReadContext): Promise<Chains> {
    const found = new Map<ChainKey, ChainListing>();
    const missing: ChainKey[] = [];
    for (const key of keys) {
      const known = this.#large.get(key, context.generation);
      if (known) found.set(key, known);
      else missing.push(key);
    }
    const parts = await Promise.all(this.#reads(missing, context));
    for (const part of parts) for (const [key, chain] of part) found.set(key, chain);
    return found;
  }

  #reads(keys: readonly ChainKey[], context: ReadContext): readonly Promise<Chains>[] {
    const { small, generation, note } = context;
    const tables = new Map<string, Set<string>>();
    for (const key of keys) {
      const [table, chain] = partsOf(key);
      tables.set(table, (tables.get(table) ?? new Set()).add(chain));
    }
    return [...tables].flatMap(([table, names]) => {
      if (this.#client.variant === 'legacy' || names.size > MOST_SINGLE_READS)
        return [this.#readTable(table, names).then((chains) => this.#large.keep(chains, generation))];
      const listings = small.has(table)
        ? [this.#list(table, undefined)]
        : [...names].map((name) => this.#listOne(table, name, generation));
      return listings.map(async (listing) => {
        const { chains, unreadable } = await listing;
        if (unreadable !== undefined) note(unreadable);
        return chains;
      });
    });
  }

  /** Questions that ask for the same at the same time, or while it waits, and no rule changes, get one answer. */
  async #listOne(table: string, name: string, generation: ReadContext['generation']): Promise<Listed> {
    if (generation === undefined) return this.#list(table, name);
    const known = this.#large.get(`${table} ${name}`, generation);
    if (known) return { chains: keyed(table, new Map([[name, known]])) };
    const key = `${table} ${name} ${generation}`;
    let reading = this.#reading.get(key);
    if (!reading) {
      reading = this.#list(table, name)
        .then((listed) => {
          this.#large.keep(listed.chains, generation);
          return listed;
        })
        .finally(() => this.#reading.delete(key));
      this.#reading.set(key, reading);
    }
    return reading;
  }

  async #limited<T>(read: () => Promise<T>): Promise<T> {
    if (this.#running >= AT_ONCE) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#running++;
    try {
      return await read();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#running--;
    }
  }

  async #list(table: string, chain: string | undefined): Promise<Listed> {
    const reader = new ListReader();
    const take = async (text: string): Promise<void> => reader.take(text);
    const reason = await this.#limited(() => this.#client.listRules(table, chain, take));
    // The same text for a chain that is not there, and for one with rules that iptables cannot print.
    if (reason?.includes('incompatible')) return { chains: new Map(), unreadable: reason };
    return { chains: keyed(table, reason === undefined ? reader.chains : new Map()) };
  }

  async #readTable(table: string, names: ReadonlySet<string>): Promise<Chains> {
    const isWanted = (chain: string): boolean => names.has(chain) || !isServiceChain(chain);
    const reader = new TableReader();
    let characters = 0;
    const take = async (text: string): Promise<void> => {
      const wasSmall = characters <= KEPT_CHARACTERS;
      characters += text.length;
      if (wasSmall && characters > KEPT_CHARACTERS) reader.keepOnly(isWanted);
      reader.take(text);
    };
    await this.#limited(() => this.#client.readTable(table, take));
    return keyed(table, reader.chains);
  }
}

/** For a moment, and while no rule changes. */
class LargeChains {
  readonly #chains = new Map<ChainKey, ChainListing>();
  #generation: ReadContext['generation'];
  #until = 0;

  get(key: ChainKey, generation: ReadContext['generation']): ChainListing | undefined {
    if (generation !== this.#generation || systemClock.now() > this.#until) this.#chains.clear();
    return this.#chains.get(key);
  }

  keep(chains: Chains, generation: ReadContext['generation']): Chains {
    // What was read before a change is no answer to those that ask after it.
    if (generation === undefined || (this.#chains.size > 0 && generation !== this.#generation)) return chains;
    for (const [key, chain] of chains) {
      if (chain.length < LARGE_CHAIN) continue;
      if (this.#chains.size === 0) {
        this.#generation = generation;
        this.#until = systemClock.now() + LARGE_CHAIN_MS;
      }
      this.#chains.set(key, chain);
    }
    return chains;
  }
}

function keyed(table: string, chains: ReadonlyMap<string, ChainListing>): Chains {
  const found = new Map<ChainKey, ChainListing>();
  for (const [name, chain] of chains) found.set(`${table} ${name}`, chain);
  return found;
}

function partsOf(key: ChainKey): readonly [table: string, chain: string] {
  const space = key.indexOf(' ');
  return [key.slice(0, space), key.slice(space + 1)];
}
