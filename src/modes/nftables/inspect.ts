/** Reads the nftables rules in the kernel for questions: ours, and those of other programs that a packet passes. */
import type { Cidr, Family } from '../../model/ip.ts';
import type { Host, Packet } from '../../plan/decide.ts';
import type { Plan } from '../../plan/types.ts';
import { NETLINK_NETFILTER } from '../../netlink/socket.ts';
import { NetlinkSockets } from '../../netlink/sockets.ts';
import type { TablePlace } from '../../netlink/nftables/message.ts';
import { nodeIpsOf } from '../../system/interfaces.ts';
import type { KernelDifference, KernelReader, WalkResult } from '../kernelRules.ts';
import { type OutInterface, outInterfaceNow, runSteps, walkSteadily } from '../walkRunner.ts';
import { walkPacket } from '../walk.ts';
import { compareTable, type KnownFacts } from './kernel/compare.ts';
import { readNftDump, writeDump } from './kernel/dump.ts';
import { MemorySource, NetlinkSource, tableName } from './kernel/source.ts';
import type { ListedChain, MemorySet, MemoryTable, NftSource } from './kernel/source.ts';
import { NftRules } from './kernel/walk.ts';
import { BACKSTOP_TABLE, isOurTable, OUR_TABLES, TABLE } from './rules/names.ts';
import { NFT_FAMILY } from './rules/print.ts';
import { groupBy } from './rules/table.ts';

interface NftReaderOptions {
  readonly family: Family;
  readonly source: NftSource;
  /** As they are when it is asked. */
  readonly facts: () => KnownFacts;
  /** Of a dump: what it leaves out. */
  readonly notes?: readonly string[];
  /** `outInterfaceNow` on this machine. Without it, that is not known. */
  readonly outInterface?: ((inInterface: string | undefined) => OutInterface) | undefined;
}

/** Of another program's table, for a dump. */
const MAX_RULES = 5000;
const MAX_ELEMENTS = 10_000;

export class NftReader implements KernelReader {
  readonly #options: NftReaderOptions;

  constructor(options: NftReaderOptions) {
    this.#options = options;
  }

  async walk(packet: Packet, host: Host): Promise<WalkResult> {
    const { source, notes: ownNotes = [], outInterface } = this.#options;
    const place = { outInterface: outInterface?.(packet.inInterface) };
    const { outcomes, notes } = await walkSteadily(
      () => source.generation(),
      async () => {
        const rules = new NftRules(source, await source.chains(), this.#isOurs);
        return runSteps(walkPacket(rules, packet, host, place));
      },
    );
    return { outcomes, notes: [...ownNotes, ...notes] };
  }

  readonly #isOurs = ({ family, table }: TablePlace): boolean =>
    family === NFT_FAMILY[this.#options.family] && isOurTable(table);

  /** The one in force, or none of ours. */
  async #place(): Promise<TablePlace> {
    const chains = await this.#options.source.chains();
    const inForce = chains.find((each) => each.base && this.#isOurs(each) && each.table !== BACKSTOP_TABLE);
    return { family: NFT_FAMILY[this.#options.family], table: inForce?.table ?? TABLE };
  }

  async compare(plan: Plan): Promise<readonly KernelDifference[]> {
    const { source, facts } = this.#options;
    const place = await this.#place();
    return compareTable({ source, place, plan, facts: facts() });
  }

  /** With the tables of other programs that packets pass, where they are not too large. */
  async dump(): Promise<unknown> {
    const { family, source, facts } = this.#options;
    const chains = await source.chains();
    const passed = [...groupBy(chains, tableName).values()].filter((each) => each.some(({ base }) => base));
    const notes: string[] = [];
    const tables: MemoryTable[] = [];
    // Also where it is dormant.
    for (const table of OUR_TABLES)
      tables.push(...(await this.#tableOf({ family: NFT_FAMILY[family], table }, Infinity, notes)));
    for (const each of passed) {
      const [place] = each;
      if (!place || tables.some((known) => tableName(known) === tableName(place))) continue;
      if (rulesIn(each) > MAX_RULES) notes.push(`table ${tableName(place)} has too many rules for a dump`);
      else tables.push(...(await this.#tableOf(place, MAX_ELEMENTS, notes)));
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
  const sockets = new NetlinkSockets();
  const source = new NetlinkSource(family, sockets.channel(NETLINK_NETFILTER));
  const facts = (): KnownFacts => ({ ...options, nodeIps: nodeIpsOf(family) });
  const reader = new NftReader({ family, source, facts, outInterface: outInterfaceNow });
  return Object.assign(reader, { close: () => sockets.close() });
}

/** `dump`: of another machine, from a file that somebody sent. Throws `BUNDLE_UNREADABLE`. */
export function nftablesReaderOfDump(family: Family, dump: unknown): KernelReader {
  const { facts, notes, tables } = readNftDump(family, dump);
  return new NftReader({ family, source: new MemorySource(tables), facts: () => facts, notes });
}
