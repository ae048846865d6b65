/**
 * A complete new table beside the one in force, and the swap of the two: one small transaction that adds the new base chains
 * and deletes the old ones. A packet meets the old table or the new one, never half of one.
 *
 * Tried on Linux 6.18: eight rebuilds of 10,000 Services with 3 endpoints under 700 connections a second lost 0 of 17,290.
 */
import type { Ip } from '../../../model/ip.ts';
import { type Protocol, PROTOCOLS } from '../../../model/objects.ts';
import type { ServicePortId } from '../../../model/serviceTracker.ts';
import type { Plan, ServicePortPlans } from '../../../plan/types.ts';
import { forEachSliced, type TimeSlice } from '../../../time/timeSlice.ts';
import { refusalOf, slices } from './committer.ts';
import { entryElement, mayGoOn } from './eviction.ts';
import { affinityMap, BACKSTOP_TABLE, TABLE_NAMES } from './names.ts';
import { printKey } from './print.ts';
import type { TableOptions } from './ruleset.ts';
import { byName, deleteChain, editOperations } from './table.ts';
import type { Element, FoundTable, NftClient, NftTables, TableTransaction } from './table.ts';
import { WrittenTable } from './written.ts';

export interface RebuildOptions {
  readonly tables: NftTables;
  /** No other program can change the table while this process runs. */
  readonly isProtected: boolean;
  readonly now: () => number;
  readonly timeSlice?: TimeSlice | undefined;
  readonly onCommit?: (transaction: TableTransaction) => void;
}

interface Clients {
  readonly plan: Plan;
  /** All addresses of this node. */
  readonly nodeIps: readonly Ip[];
}

/** So few changes are left for the swap. */
const FEW = 50;
/** Another program may delete a table between two looks. */
const SWAPS = 3;

export class Rebuild {
  readonly table: WrittenTable;
  readonly #given: RebuildOptions;
  /** Service ports that were written into the table in force meanwhile. */
  readonly #changed = new Set<ServicePortId>();
  /** Keys of the affinity entries that were copied, by protocol. */
  readonly #copied = new Map<Protocol, Set<string>>();
  readonly #stop: AbortController;

  private constructor(given: RebuildOptions, table: WrittenTable, stop: AbortController) {
    this.#given = given;
    this.#stop = stop;
    this.table = table;
  }

  /** Makes the table that is not in force, in place of whatever has its name. */
  static async begin(given: RebuildOptions, options: TableOptions): Promise<Rebuild> {
    const { tables, isProtected } = given;
    const found = await tables.list();
    const isFree = (name: string): boolean =>
      !found.some((each) => each.name === name && each.baseChains.length > 0);
    const name = TABLE_NAMES.find(isFree) ?? TABLE_NAMES[0];
    const client = tables.table(name);
    const stop = new AbortController();
    const commit: NftClient['commit'] = (transaction) => {
      stop.signal.throwIfAborted();
      return client.commit(transaction);
    };
    const affinityEntries: NftClient['affinityEntries'] = (...asked) => client.affinityEntries(...asked);
    const table = new WrittenTable({ ...given, name, client: { commit, affinityEntries } }, options);
    await table.committer.commit([
      ...(found.some((each) => each.name === name) ? ([{ kind: 'deleteTable' }] as const) : []),
      { kind: 'addTable', ...(isProtected && { isOwned: true, isPersistent: true }) },
    ]);
    return new Rebuild(given, table, stop);
  }

  /** Returns the service ports that the kernel refuses; they have what `fallback` has of them. */
  writeAll(ports: ServicePortPlans, fallback: ServicePortPlans): Promise<ReadonlyMap<ServicePortId, Error>> {
    return this.table.writeAll(ports, fallback);
  }

  /** The next commit throws. */
  stop(): void {
    this.#stop.abort();
  }

  note(ids: Iterable<ServicePortId>): void {
    for (const id of ids) this.#changed.add(id);
  }

  /** Writes what was changed meanwhile in the table in force. `most`: leaves no more than so many changes. */
  async catchUp(ports: ServicePortPlans, most = FEW): Promise<void> {
    while (this.#changed.size > most) {
      const ids = [...this.#changed];
      this.#changed.clear();
      const wanted = new Map(ids.flatMap((id) => [[id, ports.get(id)] as const]).filter(isThere));
      const refused = await this.table.change(ids, wanted);
      for (const error of refused.values()) throw error;
    }
  }

  /** The affinity entries of the table in force, but for those of endpoints that are gone. */
  async copyAffinity(from: readonly { readonly name: string }[], clients: Clients): Promise<void> {
    const { tables, timeSlice } = this.#given;
    const sets = byName(this.table.ruleset.sets);
    for (const protocol of PROTOCOLS) {
      if (!sets.has(affinityMap(protocol))) continue;
      const copied = this.#copied.get(protocol) ?? new Set();
      this.#copied.set(protocol, copied);
      const missing: Element[] = [];
      for (const { name } of from)
        await forEachSliced(
          await tables.table(name).affinityEntries(protocol),
          (entry) => {
            const element = entryElement(protocol, entry);
            const key = printKey(element.key);
            if (copied.has(key) || !mayGoOn(protocol, entry, clients)) return;
            copied.add(key);
            missing.push(element);
          },
          timeSlice,
        );
      for (const adds of slices(missing, this.table.committer.chunk)) await this.#addEntries(adds);
    }
  }

  /** Where a client has been sent elsewhere meanwhile, that stays. */
  async #addEntries(adds: readonly Element[]): Promise<void> {
    const { committer, ruleset } = this.table;
    const sets = byName(ruleset.sets);
    const { state } = await committer.attempt(editOperations([{ removes: [], adds }], sets));
    if (state === 'done') return;
    for (const each of adds) await committer.attempt(editOperations([{ removes: [], adds: [each] }], sets));
  }

  /** Returns the tables that were in force. */
  async swap(): Promise<readonly FoundTable[]> {
    const { tables, onCommit } = this.#given;
    for (let tries = 1; ; tries++) {
      const others = await this.inForce();
      const parts = [
        { table: this.table.name, transaction: this.table.hooks },
        ...others.map(({ name, baseChains }) => ({
          table: name,
          transaction: baseChains.flatMap(deleteChain),
        })),
      ];
      const outcome = await tables.commit(parts);
      if (outcome.state === 'done') {
        onCommit?.(parts.flatMap(({ transaction }) => transaction));
        return others;
      }
      if (outcome.name !== 'ENOENT' || tries === SWAPS) throw refusalOf(outcome, true).error;
    }
  }

  /** Those that packets come by; mostly one, at a first start none. */
  async inForce(): Promise<readonly FoundTable[]> {
    const found = await this.#given.tables.list();
    return found.filter(
      ({ name, baseChains }) => name !== this.table.name && name !== BACKSTOP_TABLE && baseChains.length > 0,
    );
  }
}

function isThere<K, V>(entry: readonly [K, V | undefined]): entry is readonly [K, V] {
  return entry[1] !== undefined;
}
