/** Reads chains out of the kernel, of which the reconciler does not know whether that is by text or by netlink. */
import { runSliced, type TimeSlice } from '../../../time/timeSlice.ts';
import { digestChain, mentionsServices, type ParsedChain, parseSave, SaveReader } from './parse.ts';
import type { WantedChains } from './parse.ts';
import type { ChainRef, OwnChain } from './fragment.ts';
import type { Rule, Table } from './rule.ts';

export type Chains = ReadonlyMap<string, ParsedChain>;

export interface ChainReader {
  /** Equal for the rules of a chain as they are compiled and as they are read. `undefined`: it is not known. */
  digest(chain: string, rules: readonly Rule[]): number | undefined;
  /**
   * `wanted` is asked for where there are chains of services: those whose digests it has come as `IN_PLACE`.
   * `undefined`: there is no such table.
   */
  readTable(table: Table, wanted: () => Promise<WantedChains>): Promise<Chains | undefined>;
  /** `undefined` where there is none. Without it, every look is at everything. */
  readChain?(table: Table, chain: string): Promise<ParsedChain | undefined>;
  // What a look beside the syncs needs. Changes may go on meanwhile. Without these, only a full sync looks.
  /** Of the chains that are named, as far as they are there: digests of whole chains, or of each of their rules. */
  digestTable?(table: Table, whole: ReadonlySet<string>, byRule: ReadonlySet<string>): Promise<TableDigests>;
  /** `undefined`: it is not known. */
  digestRule?(rule: Rule): number | undefined;
  /** Compares chains of services, one after another. */
  compareChains?(): ChainComparison;
}

/** Of what is added, nothing is kept but names of chains that differ. */
export interface ChainComparison {
  /** What it returns is to be awaited, where it returns anything: enough of them are under way. */
  add(chain: OwnChain): Promise<void> | undefined;
  /**
   * `differing`: of those that were added; what cannot be digested only has to be there. `others`: chains of services that were
   * not added. One of these may be missing that was made, or is listed behind one that was deleted, in the meantime.
   */
  end(): Promise<{ readonly differing: readonly ChainRef[]; readonly others: readonly ChainRef[] }>;
}

/** By the names of chains. */
export interface TableDigests {
  /** Packets do not come to its chains. */
  readonly isDormant: boolean;
  readonly chains: ReadonlyMap<string, number>;
  readonly rules: ReadonlyMap<string, readonly number[]>;
}

export type TakeText = (text: string) => Promise<void>;

/** iptables as far as it prints rules. */
export interface PrintingClient {
  save(table: Table, options: { readonly counters: boolean }): Promise<string>;
  /** The same as `save`, in pieces that are dropped once they are taken; for what is too large to hold. */
  readSave?(table: Table, options: { readonly counters: boolean }, take: TakeText): Promise<void>;
  /** One chain as a save prints it; `undefined` where there is none. */
  list?(table: Table, chain: string): Promise<string | undefined>;
  /** Without it, long work is done without a pause. */
  readonly timeSlice?: TimeSlice;
}

const COUNTERS = { counters: true };

/** Of what `iptables-save` prints, in the legacy variant and where rules cannot be read by netlink. */
export class SaveChainReader implements ChainReader {
  readonly #client: PrintingClient;
  readonly readChain?: NonNullable<ChainReader['readChain']>;

  constructor(client: PrintingClient) {
    this.#client = client;
    if (client.list) this.readChain = (table, chain) => this.#readChain(table, chain);
  }

  digest(chain: string, rules: readonly Rule[]): number {
    return digestChain(chain, rules);
  }

  async readTable(table: Table, wanted: () => Promise<WantedChains>): Promise<Chains | undefined> {
    const { timeSlice } = this.#client;
    const reader = new SaveReader();
    let isAsked = false;
    const take: TakeText = async (text) => {
      if (!isAsked && mentionsServices(text)) {
        isAsked = true;
        reader.wanted = await wanted();
      }
      timeSlice?.begin();
      await runSliced(reader.take(text), timeSlice);
    };
    if (this.#client.readSave) await this.#client.readSave(table, COUNTERS, take);
    else await take(await this.#client.save(table, COUNTERS));
    return reader.end().get(table);
  }

  async #readChain(table: Table, chain: string): Promise<ParsedChain | undefined> {
    const text = await this.#client.list?.(table, chain);
    return text === undefined ? undefined : parseSave(text).get(table)?.get(chain);
  }
}
