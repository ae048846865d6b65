/** Reads the tables of iptables for questions: the chains on a packet's way, differences from a layout, whole tables. */
import type { NetlinkChannel } from '../../netlink/channel.ts';
import { readNftGeneration } from '../../netlink/nftables/message.ts';
import type { Family } from '../../model/ip.ts';
import type { Packet } from '../../plan/decide.ts';
import type { Plan } from '../../plan/types.ts';
import { systemClock } from '../../time/systemClock.ts';
import { runSliced, TimeSlice } from '../../time/timeSlice.ts';
import { type KernelDifference, ReadOnDemand } from '../kernelReader.ts';
import type { WalkOptions, WalkResult, WalkSteps } from '../walk.ts';
import { filteredBridges } from './bridges.ts';
import { type ChainKey, ChainSource, type ReadContext, type ReadingClient } from './chainSource.ts';
import { type DumpedTables, MOST_DUMPED } from './dump.ts';
import { readKernelTables, type KernelTables } from './kernelTables.ts';
import type { OutInterface } from './outInterface.ts';
import { beginOtherWalk, notEvaluated } from './otherTables.ts';
import { compareWithPlan, plannedChains } from './rules/compare.ts';
import type { CompileOptions, Layout } from './rules/fragment.ts';
import type { ChainListing } from './rules/listing.ts';
import { type ParsedChain, SaveReader, type Tables, type WantedChains } from './rules/parse.ts';
import { TABLES } from './rules/rule.ts';
import { readTableInfo } from './tableInfo.ts';
import type { IptablesPacket, WalkedTables } from './rules/walk.ts';

export interface TablesReaderOptions {
  readonly client: ReadingClient;
  /** By default those of this machine. */
  readonly tables?: () => KernelTables;
  /** Changes with every change of the rules; `undefined`: not known. By default the kernel's. */
  readonly generation?: () => ReadContext['generation'];
  /** By default those of this machine. */
  readonly bridges?: () => ReadonlySet<string>;
  /** By which interface a packet would leave: `routesNow` on this machine. Without it nobody knows. */
  readonly routes?: (() => OutInterface) | undefined;
  /** By which tables of nf_tables are read that other programs have. Without it they are noted. */
  readonly channel?: (() => Promise<NetlinkChannel>) | undefined;
}

/** A walk over chains that are read as it needs them. */
export interface ChainWalk {
  readonly walk: (tables: WalkedTables, packet: IptablesPacket, options: WalkOptions) => WalkSteps<string>;
  /** Reads what it needs besides chains. Returns whether something was missing. */
  readonly fill?: () => Promise<boolean>;
}

/** Rules that change while they are read are read again, so often. */
const MOST_ATTEMPTS = 3;
const MOST_NOTES = 50;
/** A sync waits no longer for a walk. */
const SLICE_MS = 2;
const STEPS_PER_LOOK = 16;
const NO_TABLES: ReadonlySet<string> = new Set();
/** A flushed table of a large cluster has some 100,000. */
const MOST_DIFFERENCES = 20_000;

export class TablesReader {
  readonly #options: TablesReaderOptions;
  readonly #source: ChainSource;
  readonly #timeSlice = new TimeSlice(systemClock, 4);

  constructor(options: TablesReaderOptions) {
    this.#options = options;
    this.#source = new ChainSource(options.client);
  }

  /** `begin` is called again where rules changed while they were read. */
  async walk(packet: Packet, begin: () => ChainWalk): Promise<WalkResult<string>> {
    for (let attempts = 1; ; attempts++) {
      const tables = this.#tables();
      const generation = this.#generation(tables);
      const { outcomes, notes } = await this.#walkOnce(packet, begin(), tables, generation);
      const isSteady = this.#generation(tables) === generation;
      if (!isSteady && attempts < MOST_ATTEMPTS) continue;
      return {
        outcomes,
        notes: [
          ...(isSteady ? [] : ['rules changed while they were read']),
          ...notes.slice(0, MOST_NOTES),
          ...(notes.length > MOST_NOTES ? [`and ${notes.length - MOST_NOTES} notes more`] : []),
        ],
      };
    }
  }

  async #walkOnce(
    packet: Packet,
    { walk, fill }: ChainWalk,
    { names, small = NO_TABLES, others = [], objects = 0, notes }: KernelTables,
    generation: ReadContext['generation'],
  ): Promise<WalkResult<string>> {
    const { client, channel } = this.#options;
    const other = await beginOtherWalk(client.family, packet, others, objects, channel);
    const unreadable = new Set<string>();
    const context = { small, generation, note: (text: string) => unreadable.add(text) };
    const chains = new ReadOnDemand<ChainKey, ChainListing>((keys) => this.#source.read(keys, context));
    const listed = (table: string, chain: string): ChainListing | undefined =>
      names.has(table) ? chains.get(`${table} ${chain}`) : undefined;
    const viaBridge = this.#bridges().has(packet.inInterface ?? '');
    const tables: WalkedTables = {
      base: listed,
      rules: (table, chain, { destination, port }) => listed(table, chain)?.rulesFor(destination, port),
      others: other.chains,
      outInterface: this.#outInterface(packet),
    };
    const its = { ...packet, viaBridge };
    for (;;) {
      await this.#sliced(walk(tables, its, { record: false, isTrial: true }));
      const read = [await chains.fill(), await fill?.(), await other.fill()];
      if (read.includes(true)) continue;
      const { outcomes, notes: walkNotes } = await this.#sliced(walk(tables, its, {}));
      return { outcomes, notes: [...notes, ...other.notes(), ...walkNotes, ...unreadable] };
    }
  }

  #sliced<T>(steps: Generator<void, T>): Promise<T> {
    const timeSlice = new TimeSlice(systemClock, SLICE_MS);
    return runSliced(steps, timeSlice, STEPS_PER_LOOK);
  }

  async compare(
    { servicePorts }: Plan,
    layout: Layout,
    options: CompileOptions,
  ): Promise<readonly KernelDifference[]> {
    this.#timeSlice.begin();
    const wanted = await runSliced(plannedChains(layout, servicePorts, options), this.#timeSlice);
    const state = await this.#readOwn(wanted);
    const differences: KernelDifference[] = [];
    this.#timeSlice.begin();
    for (const found of compareWithPlan(state, { layout, servicePorts, options })) {
      differences.push(...found);
      if (differences.length >= MOST_DIFFERENCES) {
        const text = `${differences.length} differences, and perhaps more: the rest was not compared`;
        return [...differences, { kind: 'different', object: 'tables', text }];
      }
      const pause = this.#timeSlice.pause();
      if (pause) await pause;
    }
    return differences;
  }

  async #readOwn(wanted: WantedChains): Promise<Tables> {
    const { names } = this.#tables();
    const tables = new Map<string, ReadonlyMap<string, ParsedChain>>();
    for (const table of TABLES) {
      if (!names.has(table)) continue;
      const reader = new SaveReader();
      reader.wanted = wanted;
      await this.#options.client.readTable(table, async (text) => {
        this.#timeSlice.begin();
        await runSliced(reader.take(text), this.#timeSlice);
      });
      const chains = reader.end().get(table);
      if (chains) tables.set(table, chains);
    }
    return tables;
  }

  async dump(): Promise<DumpedTables> {
    const { client } = this.#options;
    const { names, others = [], notes } = this.#tables();
    const tables: Record<string, string> = {};
    const tooLong: string[] = [];
    for (const table of names) {
      const pieces: string[] = [];
      let length = 0;
      await client.readTable(table, async (text) => {
        length += text.length;
        if (length <= MOST_DUMPED) pieces.push(text);
      });
      if (length <= MOST_DUMPED) tables[table] = pieces.join('');
      else tooLong.push(`not in the dump: table ${table}, of ${length} characters`);
    }
    return {
      bridges: [...this.#bridges()],
      notes: [...notes, ...others.map(notEvaluated), ...tooLong],
      tables,
    };
  }

  #tables(): KernelTables {
    const { client, tables = () => readKernelTables(client.family, client.variant) } = this.#options;
    return tables();
  }

  /** Each destination is asked for once. */
  #outInterface({ inInterface = '' }: Packet): WalkedTables['outInterface'] {
    const lookUp = this.#options.routes?.();
    if (!lookUp) return undefined;
    const known = new Map<string, string | undefined>();
    return ({ destination, source }) => {
      const key = `${source} ${destination}`;
      if (!known.has(key)) known.set(key, lookUp(destination, source, inInterface));
      return known.get(key);
    };
  }

  #bridges(): ReadonlySet<string> {
    const { client, bridges = () => filteredBridges(client.family) } = this.#options;
    return bridges();
  }

  #generation({ names }: KernelTables): ReadContext['generation'] {
    const { client, generation } = this.#options;
    if (generation) return generation();
    if (client.variant === 'nft') return readNftGeneration();
    const present = TABLES.filter((table) => names.has(table));
    return readTableInfo(client.family, present)?.id;
  }
}

/** To read a dump. */
export function dumpedTables(family: Family, { bridges, notes, tables }: DumpedTables): TablesReaderOptions {
  return {
    client: {
      family,
      // A table is read as a whole.
      variant: 'legacy',
      listRules: async () => 'a dump has whole tables',
      readTable: async (table, take) => take(tables[table] ?? ''),
    },
    generation: () => undefined,
    bridges: () => new Set(bridges),
    tables: () => ({ names: new Set(Object.keys(tables)), notes }),
  };
}
