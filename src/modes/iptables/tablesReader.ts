/** Reads the tables of iptables for questions: the chains on a packet's way, differences from a layout, whole tables. */
import type { NetlinkChannel } from '../../netlink/channel.ts';
import { readNftGeneration } from '../../netlink/nftables/message.ts';
import type { Family } from '../../model/ip.ts';
import type { Host, Packet } from '../../plan/decide.ts';
import type { Plan } from '../../plan/types.ts';
import { systemClock } from '../../time/systemClock.ts';
import { runSliced, TimeSlice } from '../../time/timeSlice.ts';
import type { DumpFields } from '../dump.ts';
import type { KernelDifference, KernelRules, PacketPlace, Steps, WalkResult } from '../kernelRules.ts';
import { NetlinkSource, tableName } from '../nftables/kernel/source.ts';
import { NftRules } from '../nftables/kernel/walk.ts';
import { NFT_FAMILY } from '../nftables/rules/print.ts';
import { type OutInterface, runSteps, walkSteadily } from '../walkRunner.ts';
import { walkPacket } from '../walk.ts';
import {
  type Chain,
  ChainReader,
  chainsIn,
  type ChainSource,
  KernelChains,
  type ReadingClient,
} from './chains.ts';
import { filteredBridges, type KernelTables, type NftTable, readKernelTables } from './kernelTables.ts';
import { compareWithPlan, digestChain, plannedChains } from './rules/compare.ts';
import type { CompileOptions, Layout } from './rules/fragment.ts';
import type { TableChains, Tables } from './rules/textRule.ts';
import { isServiceChain } from './rules/names.ts';
import { type Table, TABLES } from './rules/rule.ts';
import { IptablesRules } from './walk.ts';

export interface TablesReaderOptions {
  readonly client: ReadingClient;
  /** By default those of the client. */
  readonly chains?: ChainSource;
  /** By default those of this machine. */
  readonly tables?: () => KernelTables;
  /** Changes with every change of the rules. By default the kernel's. */
  readonly generation?: () => number | undefined;
  /** By default those of this machine. */
  readonly bridges?: () => ReadonlySet<string>;
  /** `outInterfaceNow` on this machine. Without it, that is not known. */
  readonly outInterface?: ((inInterface: string | undefined) => OutInterface) | undefined;
  /** By which tables of nf_tables are read that other programs have. Without it they are noted. */
  readonly channel?: (() => NetlinkChannel) | undefined;
}

/** A flushed table of a large cluster has some 100,000. */
const MAX_DIFFERENCES = 20_000;
/** Characters of one table: 30,000 services with 10 endpoints have some 150 million. */
const MAX_DUMPED = 200 << 20;
/** Chains are listed by family. With more of them in it, that takes longer than a question may. */
const MAX_CHAINS = 5000;

export class TablesReader {
  readonly #options: TablesReaderOptions;
  readonly #chains: ChainSource;
  readonly #timeSlice = new TimeSlice(systemClock, 4);

  constructor(options: TablesReaderOptions) {
    this.#options = options;
    this.#chains = options.chains ?? new KernelChains(options.client);
  }

  /** `begin` adds what a mode has beside iptables; it is called again where rules changed while they were read. */
  async walk(
    packet: Packet,
    host: Host,
    begin: (rules: KernelRules, place: PacketPlace) => Steps<WalkResult> = (rules, place) =>
      walkPacket(rules, packet, host, place),
  ): Promise<WalkResult> {
    const { outInterface } = this.#options;
    const place = {
      viaBridge: this.#bridges().has(packet.inInterface ?? ''),
      outInterface: outInterface?.(packet.inInterface),
    };
    return walkSteadily(
      () => this.#generation(),
      async (generation) => {
        const tables = this.#tables();
        const { outcomes, notes } = await runSteps(begin(await this.#rules(tables, generation), place));
        const excluded = tables.others?.filter((table) => !this.#isRead(table, tables)).map(notEvaluated);
        return { outcomes, notes: [...tables.notes, ...(excluded ?? []), ...notes] };
      },
    );
  }

  async #rules(tables: KernelTables, generation: number | undefined): Promise<KernelRules> {
    const { client, channel } = this.#options;
    const { names, others = [] } = tables;
    const listed = async (wanted: ReadonlySet<string>): Promise<NftRules | undefined> => {
      if (!channel || wanted.size === 0) return undefined;
      const source = new NetlinkSource(client.family, channel());
      return new NftRules(
        source,
        (await source.chains()).filter((each) => wanted.has(tableName(each))),
      );
    };
    const readable = others.filter((table) => this.#isRead(table, tables));
    const family = NFT_FAMILY[client.family];
    return new IptablesRules({
      tables: names,
      read: (table, chains) => this.#chains.read(table, chains, generation),
      others: await listed(new Set(readable.map(({ family: of, name }) => `${of} ${name}`))),
      byNetlink: () => listed(new Set([...names].map((name) => `${family} ${name}`))),
    });
  }

  #isRead({ family }: NftTable, { objects = 0 }: KernelTables): boolean {
    return this.#options.channel !== undefined && (family === 'inet' || objects <= MAX_CHAINS);
  }

  async compare(
    { servicePorts }: Plan,
    layout: Layout,
    options: CompileOptions,
  ): Promise<readonly KernelDifference[]> {
    this.#timeSlice.begin();
    const wanted = await runSliced(plannedChains(layout, servicePorts, options), this.#timeSlice);
    const { state, incompatible } = await this.#readOwn(wanted);
    const differences = incompatible.map(
      (table): KernelDifference => ({ kind: 'different', object: `table ${table}`, text: INCOMPATIBLE }),
    );
    this.#timeSlice.begin();
    for (const found of compareWithPlan(state, { layout, servicePorts, options })) {
      const isCompared = ({ object }: KernelDifference): boolean =>
        !incompatible.some((table) => object.startsWith(`chain ${table} `));
      differences.push(...found.filter(isCompared));
      if (differences.length >= MAX_DIFFERENCES) {
        const text = `${differences.length} differences, and perhaps more: the rest was not compared`;
        return [...differences, { kind: 'different', object: 'tables', text }];
      }
      const pause = this.#timeSlice.pause();
      if (pause) await pause;
    }
    return differences;
  }

  async #readOwn(
    digests: ReadonlySet<string>,
  ): Promise<{ readonly state: Tables; readonly incompatible: readonly string[] }> {
    const { names } = this.#tables();
    const state = new Map<Table, TableChains>();
    const incompatible: string[] = [];
    const isAsPlanned = ({ name, rules }: Chain): boolean =>
      isServiceChain(name) &&
      digests.has(
        digestChain(
          name,
          rules.map(({ key }) => key),
        ),
      );
    for (const table of TABLES) {
      if (!names.has(table)) continue;
      const reader = new ChainReader(table, { isAsPlanned });
      let start = '';
      await this.#options.client.readTable(table, async (text) => {
        if (start.length < 1000) start += text;
        this.#timeSlice.begin();
        await runSliced(reader.takeSliced(text), this.#timeSlice);
      });
      if (isIncompatible(start)) incompatible.push(table);
      else state.set(table, reader.chains);
    }
    return { state, incompatible };
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
        if (length <= MAX_DUMPED) pieces.push(text);
      });
      if (length <= MAX_DUMPED) tables[table] = pieces.join('');
      else tooLong.push(`not in the dump: table ${table}, of ${length} characters`);
    }
    return {
      bridges: [...this.#bridges()],
      notes: [...notes, ...others.map(notEvaluated), ...tooLong],
      tables,
    };
  }

  #tables(): KernelTables {
    const { client, tables } = this.#options;
    return tables ? tables() : readKernelTables(client.family, client.variant);
  }

  #bridges(): ReadonlySet<string> {
    const { client, bridges } = this.#options;
    return bridges ? bridges() : filteredBridges(client.family);
  }

  /** Of legacy, none is known. */
  #generation(): number | undefined {
    const { client, generation } = this.#options;
    if (generation) return generation();
    return client.variant === 'nft' ? readNftGeneration() : undefined;
  }
}

const INCOMPATIBLE = 'it has rules of nft, so that iptables-save does not print it: it is not compared';

/** "# Table `nat' is incompatible, use 'nft' tool." is all that iptables-save prints then, and it ends with 0. */
function isIncompatible(save: string): boolean {
  return save.startsWith('# Table ') && save.includes('is incompatible');
}

function notEvaluated({ family, name }: NftTable): string {
  return `not evaluated: the nf_tables table ${family} ${name}`;
}

export interface DumpedTables {
  /** Bridges whose ports iptables sees. */
  readonly bridges: readonly string[];
  /** What else a packet passes there. */
  readonly notes: readonly string[];
  /** By table. */
  readonly tables: Readonly<Record<string, string>>;
}

export function dumpedTablesIn(fields: DumpFields): DumpedTables {
  const tables = fields.map('tables');
  return {
    bridges: fields.texts('bridges'),
    notes: fields.texts('notes'),
    tables: Object.fromEntries(tables.keys().map((name) => [name, tables.text(name)])),
  };
}

/** To read a dump. */
export function dumpedTables(family: Family, { bridges, notes, tables }: DumpedTables): TablesReaderOptions {
  const incompatible = Object.keys(tables).filter((table) => isIncompatible(tables[table] ?? ''));
  const own = incompatible.map((table) => `not evaluated: table ${table}, which has rules of nft`);
  return {
    client: {
      family,
      variant: 'legacy',
      listRules: async () => 'a dump has whole tables',
      readTable: async (table, take) => take(tables[table] ?? ''),
    },
    chains: chainsIn(tables),
    generation: () => undefined,
    bridges: () => new Set(bridges),
    tables: () => ({ names: new Set(Object.keys(tables)), notes: [...notes, ...own] }),
  };
}
