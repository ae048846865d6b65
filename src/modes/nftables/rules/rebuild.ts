/**
 * A complete new table beside the one in force, and the swap of the two: one small transaction that adds the new base chains
 * and deletes the old ones. A packet meets the old table or the new one, never half of one.
 *
 * Tried on Linux 6.18: eight rebuilds of 10,000 Services with 3 endpoints under 700 connections a second lost 0 of 17,290.
 */
import { type Protocol, PROTOCOLS } from '../../../model/objects.ts';
import type { ServicePortId } from '../../../model/serviceTracker.ts';
import type { Plan, ServicePortPlans } from '../../../plan/types.ts';
import { forEachSliced, type TimeSlice } from '../../../time/timeSlice.ts';
import { entryElement, mayGoOn } from './eviction.ts';
import { affinityMap, BACKSTOP_TABLE, TABLE_NAMES } from './names.ts';
import { printKey } from './print.ts';
import type { TableOptions } from './ruleset.ts';
import { byName, deleteChain, editOperations, slices } from './table.ts';
import type { AffinityEntry, Element, FoundTable, NftClient, NftTables, TableTransaction } from './table.ts';
import { refusalOf, WrittenTable } from './written.ts';

export interface RebuildOptions {
  readonly tables: NftTables;
  /** No other program can change the table while this process runs. */
  readonly isProtected: boolean;
  readonly now: () => number;
  readonly timeSlice?: TimeSlice | undefined;
  readonly onCommit?: (transaction: TableTransaction) => void;
}

interface RebuildTask {
  readonly plan: Plan;
  readonly options: TableOptions;
  /** What the table shall have; it may change meanwhile, which `note` tells. */
  readonly ports: ServicePortPlans;
  /** What it has of the service ports that the kernel refuses. */
  readonly fallback: ServicePortPlans;
  /** Work that has to end before. */
  readonly after: Promise<unknown> | undefined;
}

/** So few changes are left for the swap. */
const FEW = 50;
/** Another program may delete a table between two looks. */
const SWAPS = 3;

export class Rebuild {
  readonly #given: RebuildOptions;
  readonly #task: RebuildTask;
  /** Service ports that were written into the table in force meanwhile. */
  readonly #changed = new Set<ServicePortId>();
  /** Keys of the affinity entries that were copied, by protocol. */
  readonly #copied = new Map<Protocol, Set<string>>();
  readonly #stop = new AbortController();
  #table: WrittenTable | undefined;
  #error: unknown;
  /** Service ports that the kernel refuses. */
  refused: ReadonlyMap<ServicePortId, Error> = new Map();
  /** What was built is of no use: another program changed it. */
  isSpoiled = false;
  /** The table can be swapped now, or the rebuild has failed. */
  hasEnded = false;
  /** Never rejects. */
  readonly done: Promise<void>;

  /** Begins at once. */
  constructor(given: RebuildOptions, task: RebuildTask) {
    this.#given = given;
    this.#task = task;
    this.done = this.#run()
      .catch((error: unknown) => {
        this.#error = error;
      })
      .then(() => {
        this.hasEnded = true;
      });
  }

  async #run(): Promise<void> {
    const { ports, fallback, after } = this.#task;
    await after;
    this.#table = await this.#create();
    this.refused = await this.#table.writeAll(new Map(ports), fallback);
    await this.catchUp();
    await this.copyAffinity(await this.#inForce());
  }

  /** Once it has ended: throws where it failed. */
  get table(): WrittenTable {
    if (!this.#table || this.#error !== undefined) throw this.#error;
    return this.#table;
  }

  /** Makes the table that is not in force, in place of whatever has its name. */
  async #create(): Promise<WrittenTable> {
    const { tables, isProtected } = this.#given;
    const found = await tables.list();
    const isFree = (name: string): boolean =>
      !found.some((each) => each.name === name && each.baseChains.length > 0);
    const name = TABLE_NAMES.find(isFree) ?? TABLE_NAMES[0];
    const inner = tables.table(name);
    const client: NftClient = {
      commit: (transaction) => {
        this.#stop.signal.throwIfAborted();
        return inner.commit(transaction);
      },
      affinityEntries: (protocol) => inner.affinityEntries(protocol),
    };
    const table = new WrittenTable({ ...this.#given, name, client }, this.#task.options);
    await table.commit([
      ...(found.some((each) => each.name === name) ? ([{ kind: 'deleteTable' }] as const) : []),
      { kind: 'addTable', ...(isProtected && { isOwned: true, isPersistent: true }) },
    ]);
    return table;
  }

  /** These were written into the table in force. */
  note(ids: Iterable<ServicePortId>): void {
    for (const id of ids) this.#changed.add(id);
  }

  /** Another program changed tables: those of these names, or any. */
  spoil(names: ReadonlySet<string> | undefined): void {
    if (names && !names.has(this.#table?.name ?? '')) return;
    this.isSpoiled = true;
    this.#stop.abort();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.done;
  }

  /** Writes what was changed meanwhile in the table in force, and leaves no more than so many changes. */
  async catchUp(most = FEW): Promise<void> {
    while (this.#changed.size > most) {
      const ids = [...this.#changed];
      this.#changed.clear();
      const refused = await this.table.change(ids, this.#task.ports);
      for (const error of refused.values()) throw error;
    }
  }

  /** The affinity entries of tables that are or were in force, but for those of endpoints that are gone. */
  async copyAffinity(from: readonly { readonly name: string }[], plan = this.#task.plan): Promise<void> {
    const { tables, timeSlice } = this.#given;
    const { table } = this;
    const { ruleset, options } = table;
    const sets = byName(ruleset.sets);
    const clients = { plan, nodeIps: options.nodeIps ?? [] };
    for (const protocol of PROTOCOLS) {
      if (!sets.has(affinityMap(protocol))) continue;
      const copied = this.#copied.get(protocol) ?? new Set();
      this.#copied.set(protocol, copied);
      const missing: Element[] = [];
      const take = (entry: AffinityEntry): void => {
        const element = entryElement(protocol, entry);
        const key = printKey(element.key);
        if (copied.has(key) || !mayGoOn(protocol, entry, clients)) return;
        copied.add(key);
        missing.push(element);
      };
      for (const { name } of from)
        await forEachSliced(await tables.table(name).affinityEntries(protocol), take, timeSlice);
      for (const adds of slices(missing, table.chunk)) {
        const { state } = await table.attempt(editOperations([{ removes: [], adds }], sets));
        if (state === 'done') continue;
        // Where a client has been sent elsewhere meanwhile, that stays.
        for (const each of adds) await table.attempt(editOperations([{ removes: [], adds: [each] }], sets));
      }
    }
  }

  /** Returns the tables that were in force. */
  async swap(): Promise<readonly FoundTable[]> {
    const { table } = this;
    const { tables, onCommit } = this.#given;
    for (let tries = 1; ; tries++) {
      const others = await this.#inForce();
      const parts = [
        { table: table.name, transaction: table.hooks },
        ...others.map(({ name, baseChains }) => ({
          table: name,
          transaction: baseChains.flatMap(deleteChain),
        })),
      ];
      const outcome = await tables.commit(parts);
      if (outcome.state === 'done') {
        onCommit?.(parts.flatMap(({ transaction }) => transaction));
        table.isInForce = true;
        return others;
      }
      if (outcome.name !== 'ENOENT' || tries === SWAPS) throw refusalOf(outcome, true).error;
    }
  }

  /** The tables that packets come by; mostly one, at a first start none. */
  async #inForce(): Promise<readonly FoundTable[]> {
    const found = await this.#given.tables.list();
    return found.filter(
      ({ name, baseChains }) =>
        name !== this.#table?.name && name !== BACKSTOP_TABLE && baseChains.length > 0,
    );
  }
}
