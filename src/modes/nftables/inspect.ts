/** Reads the nftables rules in the kernel for questions: ours, and those of other programs that a packet passes. */
import type { Cidr, Family } from '../../model/ip.ts';
import type { Host, Packet } from '../../plan/decide.ts';
import type { Plan } from '../../plan/types.ts';
import { NETLINK_NETFILTER } from '../../netlink/socket.ts';
import { NetlinkThread } from '../../netlink/thread.ts';
import type { TablePlace } from '../../netlink/nftables/message.ts';
import { nodeIpsOf } from '../../system/interfaces.ts';
import { systemClock } from '../../time/systemClock.ts';
import { TimeSlice } from '../../time/timeSlice.ts';
import type { KernelDifference, KernelReader } from '../kernelReader.ts';
import type { WalkResult } from '../walk.ts';
import { canonical } from './comparison.ts';
import { compareTable, type KnownFacts } from './kernel/compare.ts';
import { readNftDump, writeDump } from './kernel/dump.ts';
import type { LearnedElement } from './kernel/machine.ts';
import { type MemorySet, MemorySource, type MemoryTable } from './kernel/memorySource.ts';
import { NetlinkSource } from './kernel/netlinkSource.ts';
import type { ListedChain, ListedRule, NftSource } from './kernel/source.ts';
import { tableName } from './kernel/source.ts';
import { KernelWalk, type ReadTables } from './kernel/walk.ts';
import { lowerRule } from './lower.ts';
import { BACKSTOP_TABLE, TABLE } from './rules/names.ts';
import { NFT_FAMILY } from './rules/print.ts';
import { groupBy, type Ruleset } from './rules/table.ts';

interface NftReaderOptions {
  readonly family: Family;
  readonly source: NftSource;
  /** As they are when it is asked. */
  readonly facts: () => KnownFacts;
  /** The table as it was last written, where that is known: another rule in it is another program's. */
  readonly ruleset?: () => Ruleset;
  /** Of a dump: what it leaves out. */
  readonly notes?: readonly string[];
}

/** What every walk begins with. */
interface Structure extends ReadTables {
  /** After which change it was read. */
  readonly generation: number | undefined;
  /** By which our rules were told from others. */
  readonly ruleset: Ruleset | undefined;
  readonly isOurs: (chain: string, rule: ListedRule) => boolean;
}

/** A walk during which rules changed is begun again; after so many it is taken as it is. */
const WALKS = 3;
const MOST_NOTES = 50;
/** Of another program's table, for a dump. */
const MOST_RULES = 5000;
const MOST_ELEMENTS = 10_000;

export class NftReader implements KernelReader {
  readonly #options: NftReaderOptions;
  readonly #place: TablePlace;
  /** With the backstop's. */
  readonly #own: readonly TablePlace[];
  readonly #timeSlice = new TimeSlice(systemClock, 4);
  /** As long as no rule changes, what a walk begins with is not read again. */
  #last: Structure | undefined;

  constructor(options: NftReaderOptions) {
    this.#options = options;
    this.#place = { family: NFT_FAMILY[options.family], table: TABLE };
    this.#own = [this.#place, { ...this.#place, table: BACKSTOP_TABLE }];
  }

  async walk(packet: Packet, host: Host): Promise<WalkResult<LearnedElement>> {
    const { family, source, notes: ownNotes = [] } = this.#options;
    for (let walks = 1; ; walks++) {
      const structure = await this.#structure();
      const walk = new KernelWalk(family, source, structure, structure.isOurs);
      const { outcomes, notes } = await walk.result(packet, host);
      const isSteady = (await source.generation()) === structure.generation;
      if (isSteady && structure.generation !== undefined) this.#last = structure;
      if (!isSteady && walks < WALKS) continue;
      const all = [...ownNotes, ...(isSteady ? [] : ['rules changed while they were read']), ...notes];
      const rest = all.length - MOST_NOTES;
      return { outcomes, notes: rest > 0 ? [...all.slice(0, MOST_NOTES), `and ${rest} notes more`] : all };
    }
  }

  /** Rules of other programs are not in it: they count packets, and are read for each walk. */
  async #structure(): Promise<Structure> {
    const { source } = this.#options;
    const last = this.#last;
    const ruleset = this.#options.ruleset?.();
    if (last && last.ruleset === ruleset && (await source.generation()) === last.generation) return last;
    // At once: each wait takes longer than what is read.
    const [generation, chains, ...tables] = await Promise.all([
      source.generation(),
      source.chains(),
      ...this.#own.map(async (place) => ({ place, contents: await source.contents(place) })),
    ]);
    return { generation, chains, tables, ruleset, isOurs: this.#recognition(ruleset) };
  }

  /** Which rules of our table are ours. */
  #recognition(ruleset: Ruleset | undefined): Structure['isOurs'] {
    const { family } = this.#options;
    if (!ruleset) return () => true;
    const { chains } = ruleset;
    const known = new Map<string, ReadonlySet<string>>();
    const found = new WeakMap<ListedRule['expressions'], boolean>();
    return (name, { expressions }) => {
      const before = found.get(expressions);
      if (before !== undefined) return before;
      let texts = known.get(name);
      if (!texts) {
        const rules = chains.find((chain) => chain.name === name)?.rules ?? [];
        known.set(name, (texts = new Set(rules.map((rule) => canonical(lowerRule(rule, family))))));
      }
      const isOurs = texts.has(canonical(expressions));
      found.set(expressions, isOurs);
      return isOurs;
    };
  }

  compare(plan: Plan): Promise<readonly KernelDifference[]> {
    const { source, facts } = this.#options;
    this.#timeSlice.begin();
    return compareTable({ source, place: this.#place, plan, facts: facts(), timeSlice: this.#timeSlice });
  }

  /** With the tables of other programs that packets pass, where they are not too large. */
  async dump(): Promise<unknown> {
    const { family, source, facts } = this.#options;
    const chains = await source.chains();
    const passed = [...groupBy(chains, tableName).values()].filter((each) => each.some(({ base }) => base));
    const notes: string[] = [];
    const tables: MemoryTable[] = [];
    // Also where it is dormant.
    for (const place of this.#own) tables.push(...(await this.#tableOf(place, Infinity, notes)));
    for (const each of passed) {
      const [place] = each;
      if (!place || tables.some((known) => tableName(known) === tableName(place))) continue;
      if (rulesIn(each) > MOST_RULES) notes.push(`table ${tableName(place)} has too many rules for a dump`);
      else tables.push(...(await this.#tableOf(place, MOST_ELEMENTS, notes)));
    }
    return writeDump(family, { facts: facts(), notes, tables });
  }

  async #tableOf(
    { family, table }: TablePlace,
    most: number,
    notes: string[],
  ): Promise<readonly MemoryTable[]> {
    const { source } = this.#options;
    const whole = await source.table({ family, table });
    if (!whole) return [];
    const sets: MemorySet[] = [];
    for (const set of whole.sets) {
      const elements = await source.allElements({ family, table, set: set.name });
      if (elements.length > most)
        notes.push(`set ${set.name} of table ${family} ${table} has too many elements for a dump`);
      sets.push({ ...set, elements: elements.length > most ? [] : elements });
    }
    return [{ family, table, ...whole, sets }];
  }
}

function rulesIn(chains: readonly ListedChain[]): number {
  return chains.reduce((sum, { references }) => sum + references, 0);
}

interface OpenOptions {
  readonly masqueradeBit: number;
  /** Where it is not known, as the kernel has it. */
  readonly counters?: boolean;
  /** Where it is not known, as the kernel has it. */
  readonly serviceCidrs?: readonly Cidr[];
}

/** For a program beside the proxy, or where none runs: on sockets of its own. */
export async function openNftablesReader(
  family: Family,
  options: OpenOptions,
): Promise<KernelReader & { close(): Promise<void> }> {
  const thread = await NetlinkThread.start();
  const source = new NetlinkSource(family, thread.channel(NETLINK_NETFILTER));
  const facts = (): KnownFacts => ({ ...options, nodeIps: nodeIpsOf(family) });
  const reader = new NftReader({ family, source, facts });
  return Object.assign(reader, { close: () => thread.close() });
}

/** `dump`: of another machine, from a file that somebody sent. Throws `BUNDLE_UNREADABLE`. */
export function nftablesReaderOfDump(family: Family, dump: unknown): KernelReader {
  const { facts, notes, tables } = readNftDump(family, dump);
  return new NftReader({ family, source: new MemorySource(tables), facts: () => facts, notes });
}
