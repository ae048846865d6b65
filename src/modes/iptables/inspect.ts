/** Reads the tables of iptables for questions, in processes of its own: no sync waits for them, and nothing is changed. */
import type { Family, Ip } from '../../model/ip.ts';
import { readNfacct } from '../../netlink/nfacct.ts';
import { readNftGeneration } from '../../netlink/nftables/message.ts';
import type { Host, Packet } from '../../plan/decide.ts';
import type { Plan } from '../../plan/types.ts';
import { localIps } from '../../system/interfaces.ts';
import { systemClock } from '../../time/systemClock.ts';
import { runSliced, TimeSlice } from '../../time/timeSlice.ts';
import { type KernelDifference, type KernelReader, ReadOnDemand } from '../kernelReader.ts';
import type { WalkResult } from '../walk.ts';
import { filteredBridges } from './bridges.ts';
import { type ChainKey, chainSource } from './chainSource.ts';
import { type ClientOptions, IptablesClient } from './client.ts';
import { type IptablesDump, MOST_DUMPED, readDump } from './dump.ts';
import { readKernelTables, type KernelTables } from './kernelTables.ts';
import { isConntrackLiberal, type MachineSettings } from './proxier.ts';
import { compareWithPlan, plannedChains } from './rules/compare.ts';
import { compileOptionsOf, type LayoutName, nodePortIpsOf } from './rules/fragment.ts';
import { LAYOUTS } from './rules/layouts/index.ts';
import type { ChainListing } from './rules/listing.ts';
import { NFACCT } from './rules/names.ts';
import { type ParsedChain, SaveReader, type Tables, type WantedChains } from './rules/parse.ts';
import { TABLES } from './rules/rule.ts';
import { walkTables } from './rules/walk.ts';

export interface IptablesReaderOptions {
  readonly client: Pick<IptablesClient, 'family' | 'variant' | 'readChain' | 'readTable'>;
  readonly layout: LayoutName;
  /** With which rules are compiled. */
  readonly settings: MachineSettings;
  /** The node's, in this family. */
  readonly addresses?: () => readonly Ip[];
  /** By default those of this machine. */
  readonly tables?: () => KernelTables;
  /** Changes with every change of the rules; `undefined`: not known. By default the kernel's. */
  readonly generation?: () => number | undefined;
  /** By default those of this machine. */
  readonly bridges?: () => ReadonlySet<string>;
}

/** Rules that change while they are read are read again, so often. */
const MOST_ATTEMPTS = 3;
const MOST_NOTES = 50;
/** A flushed table of a large cluster has some 100,000. */
const MOST_DIFFERENCES = 20_000;

export class IptablesReader implements KernelReader {
  readonly #options: IptablesReaderOptions;
  readonly #timeSlice = new TimeSlice(systemClock, 4);

  constructor(options: IptablesReaderOptions) {
    this.#options = options;
  }

  async walk(packet: Packet, host: Host): Promise<WalkResult<string>> {
    for (let attempts = 1; ; attempts++) {
      const before = this.#generation();
      const { outcomes, notes } = await this.#walkOnce(packet, host);
      const isSteady = this.#generation() === before;
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

  async #walkOnce(packet: Packet, host: Host): Promise<WalkResult<string>> {
    const { client } = this.#options;
    const { names, notes } = this.#tables();
    const unreadable = new Set<string>();
    const source = chainSource(client, (text) => unreadable.add(text));
    const chains = new ReadOnDemand<ChainKey, ChainListing>((keys) => source.read(keys));
    const listed = (table: string, chain: string): ChainListing | undefined =>
      names.has(table) ? chains.get(`${table} ${chain}`) : undefined;
    const viaBridge = this.#bridges().has(packet.inInterface ?? '');
    for (;;) {
      const result = walkTables(
        {
          base: listed,
          rules: (table, chain, { destination, port }) => listed(table, chain)?.rulesFor(destination, port),
        },
        { ...packet, viaBridge },
        host,
      );
      if (!(await chains.fill()))
        return { outcomes: result.outcomes, notes: [...notes, ...result.notes, ...unreadable] };
    }
  }

  async compare(plan: Plan): Promise<readonly KernelDifference[]> {
    const { layout: name, settings, client, addresses = () => localIps(client.family) } = this.#options;
    const layout = LAYOUTS[name];
    const nodePortIps = nodePortIpsOf(plan.view.nodePorts, addresses);
    const options = compileOptionsOf(plan, { ...settings, nodePortIps });
    const { servicePorts } = plan;
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

  async dump(): Promise<IptablesDump> {
    const { client, layout, settings, addresses = () => localIps(client.family) } = this.#options;
    const { names, notes } = this.#tables();
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
      kind: 'iptables',
      version: 1,
      family: client.family,
      variant: client.variant,
      layout,
      settings,
      addresses: addresses(),
      bridges: [...this.#bridges()],
      notes: [...notes, ...tooLong],
      tables,
    };
  }

  #tables(): KernelTables {
    const { client, tables = () => readKernelTables(client.family, client.variant) } = this.#options;
    return tables();
  }

  #bridges(): ReadonlySet<string> {
    const { client, bridges = () => filteredBridges(client.family) } = this.#options;
    return bridges();
  }

  /** Legacy has none: there a table is read as a whole. */
  #generation(): number | undefined {
    const { client, generation = readNftGeneration } = this.#options;
    return client.variant === 'nft' ? generation() : undefined;
  }
}

export interface OpenReaderOptions extends Pick<ClientOptions, 'variant' | 'runner' | 'lockPath'> {
  readonly layout: LayoutName;
  readonly masqueradeBit: number;
}

/** For a program beside the proxy, or where none runs. */
export async function openIptablesReader(
  family: Family,
  { layout, masqueradeBit, ...options }: OpenReaderOptions,
): Promise<KernelReader & { close(): void }> {
  const client = await IptablesClient.open({ ...options, family });
  const hasCounter = (name: string): boolean => readNfacct(name) !== undefined;
  const reader = new IptablesReader({
    client,
    layout,
    settings: {
      masqueradeMark: (1 << masqueradeBit) >>> 0,
      randomFully: client.features.randomFully,
      dropInvalid: !isConntrackLiberal(),
      nfacct: {
        invalidDropped: hasCounter(NFACCT.invalidDropped),
        localhostNodePorts: hasCounter(NFACCT.localhostNodePorts),
      },
    },
  });
  return Object.assign(reader, { close: () => undefined });
}

/** `dump`: of another machine, from a file that somebody sent. */
export function iptablesReaderOfDump(family: Family, dump: unknown): KernelReader {
  const { layout, settings, addresses, bridges, notes, tables } = readDump(family, dump);
  return new IptablesReader({
    client: {
      family,
      // A table is read as a whole.
      variant: 'legacy',
      readChain: async () => 'a dump has whole tables',
      readTable: async (table, take) => take(tables[table] ?? ''),
    },
    layout,
    settings,
    addresses: () => addresses,
    bridges: () => new Set(bridges),
    tables: () => ({ names: new Set(Object.keys(tables)), notes }),
  });
}
