/**
 * One table of ours, and what was written into it. A change compiles each service port before and after, and commits the
 * difference. Nothing is read back.
 */
import { deepEqual } from '../../../model/equal.ts';
import type { ServicePortId } from '../../../model/serviceTracker.ts';
import type { ServicePortPlan, ServicePortPlans } from '../../../plan/types.ts';
import { forEachSliced, runSliced, type TimeSlice } from '../../../time/timeSlice.ts';
import { Committer, EditStream, type Refusal, refusalOf, slices } from './committer.ts';
import { compileElements, compileShared, type NftFragment } from './compile.ts';
import {
  amendChains,
  diffElements,
  divide,
  dropped,
  editsFor,
  isDivisible,
  missingIn,
  withoutGaps,
} from './diff.ts';
import { ReferenceCounts } from './referenceCounts.ts';
import { fixedElements, rulesetOf, type TableOptions, type TableShape } from './ruleset.ts';
import { addChains, addSets, byName, editOperations, editSize } from './table.ts';
import type { Element, ElementEdit, NftClient, Ruleset, TableTransaction } from './table.ts';

/** What a table has of a service port, and besides. */
export interface Layout {
  compile(port: ServicePortPlan, options: TableOptions): NftFragment;
  /** The same without its own elements, of which a large cluster has too many to make them twice. */
  compileShared(port: ServicePortPlan, options: TableOptions): NftFragment;
  ruleset(shape: TableShape, options: TableOptions, before: Ruleset): Ruleset;
  /** What comes from the node and its settings. */
  fixed(options: TableOptions): readonly Element[];
}

export const SERVICES: Layout = {
  compile: compileElements,
  compileShared,
  ruleset: rulesetOf,
  fixed: fixedElements,
};

interface WrittenTableOptions {
  readonly name: string;
  readonly layout?: Layout;
  readonly client: NftClient;
  readonly now: () => number;
  readonly timeSlice?: TimeSlice | undefined;
  /** Called with each transaction that the kernel took. */
  readonly onCommit?: ((transaction: TableTransaction) => void) | undefined;
}

type Refused = ReadonlyMap<ServicePortId, Error>;

const NONE: Refused = new Map();
const EMPTY: Ruleset = { sets: [], chains: [] };
const PORTS_PER_LOOK = 4;
/**
 * A pool size or a time-out that nobody uses stays for so long. A rollout comes back to most sizes within a moment; and no
 * packet is on its way any more that was led there.
 */
const IDLE_MS = 5000;
/** What one transaction removes, so that it does not hold the kernel's lock for long. */
const REMOVALS = 1000;

export class WrittenTable {
  readonly name: string;
  readonly client: NftClient;
  readonly committer: Committer;
  readonly #given: WrittenTableOptions;
  readonly #layout: Layout;
  readonly #ports = new Map<ServicePortId, ServicePortPlan>();
  readonly #counts = new ReferenceCounts();
  /** As the kernel has it. */
  #ruleset = EMPTY;
  /** Of the counts, when the ruleset was last equal to what they ask for. */
  #version = -1;
  #options: TableOptions;
  /** Elements that were added or deleted. */
  objects = 0;

  constructor(given: WrittenTableOptions, options: TableOptions) {
    this.#given = given;
    this.#layout = given.layout ?? SERVICES;
    this.name = given.name;
    this.client = given.client;
    this.committer = new Committer(given.client, given.now, given.onCommit);
    this.#options = options;
  }

  /** What is in the table. */
  get ports(): ServicePortPlans {
    return this.#ports;
  }

  get options(): TableOptions {
    return this.#options;
  }

  get ruleset(): Ruleset {
    return this.#ruleset;
  }

  /** The base chains, by which packets come. */
  get hooks(): TableTransaction {
    return addChains(this.#ruleset.chains.filter(({ hook }) => hook));
  }

  /**
   * Everything into a table that was just made, but for its base chains: no packet comes by. Returns the service ports that
   * the kernel refuses; of these, what `fallback` has is written.
   */
  async writeAll(ports: ServicePortPlans, fallback: ServicePortPlans): Promise<Refused> {
    const options = this.#options;
    const { timeSlice } = this.#given;
    const count = (port: ServicePortPlan): void =>
      this.#counts.addWritten(this.#layout.compileShared(port, options));
    await forEachSliced(ports.values(), count, timeSlice, PORTS_PER_LOOK);
    this.#ruleset = this.#rulesetFor(options);
    this.#version = this.#counts.version;
    const { sets, chains } = this.#ruleset;
    await this.committer.commit([...addSets(sets), ...addChains(chains.filter(({ hook }) => !hook))]);
    const stream = new EditStream(this.committer, byName(sets));
    await forEachSliced(
      ports,
      ([id, port]) =>
        stream.add({ owner: id, removes: [], adds: this.#layout.compile(port, options).elements }),
      timeSlice,
    );
    await stream.flush();
    const { refused } = stream;
    for (const [id, port] of ports)
      if (refused.has(id)) this.#counts.remove(this.#layout.compileShared(port, options), this.#given.now());
      else this.#ports.set(id, port);
    this.#counts.takeChanges(); // all of it is written now
    for (const some of slices(this.#shared(), this.committer.chunk))
      await stream.add({ owner: undefined, removes: [], adds: some });
    await stream.flush();
    this.objects += stream.elements;
    const kept = [...refused.keys()].filter((id) => fallback.has(id));
    if (kept.length > 0) await this.change(kept, fallback);
    return refused;
  }

  *#shared(): Generator<Element> {
    yield* this.#counts.elements();
    yield* this.#layout.fixed(this.#options);
  }

  /**
   * Makes these service ports what `wanted` has. Returns those that the kernel refuses, of which nothing is changed. Throws
   * `NFTABLES_CHANGED` where a refusal cannot be explained by any of them: then the table has to be built again.
   */
  async change(
    ids: readonly ServicePortId[],
    wanted: ServicePortPlans,
    options = this.#options,
  ): Promise<Refused> {
    const areOptionsNew = !deepEqual(options, this.#options);
    const all = areOptionsNew ? [...new Set([...ids, ...this.#affectedBy(options)])] : ids;
    const outcome = await this.#write(all, wanted, options);
    if (outcome === 'done') return NONE;
    if (!outcome.isExplicable || areOptionsNew) throw outcome.error;
    const refused = await this.#bisect(ids, wanted, outcome);
    if (refused.size < 2) return refused;
    // Where an address passes from one service port to another, a half may have been refused for the other.
    return this.#bisect([...refused.keys()], wanted, outcome);
  }

  async #bisect(ids: readonly ServicePortId[], wanted: ServicePortPlans, outcome: Refusal): Promise<Refused> {
    const [first] = ids;
    if (first === undefined) return NONE;
    if (ids.length === 1) return new Map([[first, outcome.error]]);
    const middle = ids.length >> 1;
    const refused = new Map<ServicePortId, Error>();
    for (const half of [ids.slice(0, middle), ids.slice(middle)]) {
      const part = await this.#write(half, wanted, this.#options);
      if (part === 'done') continue;
      if (!part.isExplicable) throw part.error;
      for (const [id, error] of await this.#bisect(half, wanted, part)) refused.set(id, error);
    }
    return refused;
  }

  /** Node ports with affinity have an element for each address of the node. */
  #affectedBy({ nodePortIps }: TableOptions): readonly ServicePortId[] {
    if (deepEqual(nodePortIps, this.#options.nodePortIps)) return [];
    return [...this.#ports].flatMap(([id, { affinitySeconds }]) => (affinitySeconds === undefined ? [] : id));
  }

  async #write(
    ids: readonly ServicePortId[],
    wanted: ServicePortPlans,
    options: TableOptions,
  ): Promise<'done' | Refusal> {
    const before = this.#options;
    const plans = ids.map((id) => ({ id, before: this.#ports.get(id), after: wanted.get(id) }));
    const isNew = options !== before;
    const changed = plans.filter((each) => isNew || each.before !== each.after);
    const edits = await editsFor(changed, {
      before: (port) => this.#layout.compile(port, before),
      after: (port) => this.#layout.compile(port, options),
      counts: this.#counts,
      ...this.#given,
    });
    if (isNew) edits.push(await this.#fixedEdit(before, options));
    const after =
      this.#counts.version === this.#version && !isNew ? this.#ruleset : this.#rulesetFor(options);
    const failure = await this.#commit(edits, after);
    if (failure) {
      this.#version = -1;
      for (const each of changed) {
        if (each.before) this.#counts.add(this.#layout.compile(each.before, before));
        if (each.after) this.#counts.remove(this.#layout.compile(each.after, options), this.#given.now());
      }
      this.#counts.takeChanges();
      return failure;
    }
    this.#version = this.#counts.version;
    this.#options = options;
    for (const { id, after: port } of changed)
      if (port) this.#ports.set(id, port);
      else this.#ports.delete(id);
    return 'done';
  }

  async #fixedEdit(before: TableOptions, after: TableOptions): Promise<ElementEdit> {
    const steps = diffElements(this.#layout.fixed(before), this.#layout.fixed(after));
    return { owner: undefined, ...(await runSliced(steps, this.#given.timeSlice)) };
  }

  /** All of it; or, where the first transaction is refused, nothing. */
  async #commit(edits: readonly ElementEdit[], after: Ruleset): Promise<Refusal | undefined> {
    const before = this.#ruleset;
    const { timeSlice } = this.#given;
    const wantedSets = byName(after.sets);
    // A set that goes takes its elements along.
    const kept = edits
      .map((edit) => ({ ...edit, removes: edit.removes.filter(({ set }) => wantedSets.has(set)) }))
      .filter((edit) => editSize(edit) > 0);
    const order = await runSliced(withoutGaps(kept), timeSlice);
    const newSets = missingIn(before.sets, after.sets);
    const newChains = missingIn(before.chains, after.chains);
    const first = [...addSets(newSets), ...addChains(newChains)];
    const last = before === after ? [] : amendChains(before, after);
    const sets = byName([...before.sets, ...newSets]);
    const { chunk } = this.committer;
    const isLarge = isDivisible(order, chunk);
    // A packet that is on its way sees no rule of a chain that comes with what leads there.
    if (first.length > 0 && (isLarge || newChains.length > 0)) {
      const failure = await this.#attempt(first, true);
      if (failure) return failure;
      this.#ruleset = { sets: [...sets.values()], chains: [...before.chains, ...newChains] };
      first.length = 0;
    }
    if (isLarge) {
      const { early, main, late } = await runSliced(divide(order, sets, chunk), timeSlice);
      const parts = [
        ...[...slices(early, chunk)].map((adds) => [{ removes: [], adds }]),
        ...main,
        ...[...slices(late, chunk)].map((removes) => [{ removes, adds: [] }]),
      ];
      const earlyParts = Math.ceil(early.length / chunk);
      for (const [index, part] of parts.entries()) {
        if (index === earlyParts) await this.#mustCommit(last);
        await this.#mustCommit(editOperations(part, sets));
      }
    } else {
      const failure = await this.#attempt([...first, ...editOperations(order.first, sets), ...last], true);
      if (failure) return failure;
      await this.#mustCommit(editOperations([{ removes: order.last, adds: [] }], sets));
    }
    for (const some of slices(dropped(this.#ruleset, after), REMOVALS)) await this.#mustCommit(some);
    this.#ruleset = after;
    this.objects += edits.reduce((sum, edit) => sum + editSize(edit), 0);
    return undefined;
  }

  async #attempt(transaction: TableTransaction, isExplicable: boolean): Promise<Refusal | undefined> {
    const outcome = await this.committer.attempt(transaction);
    return outcome.state === 'done' ? undefined : refusalOf(outcome, isExplicable);
  }

  /** In the middle of a change: what is in the table is known no more. */
  async #mustCommit(transaction: TableTransaction): Promise<void> {
    const failure = await this.#attempt(transaction, false);
    if (failure) throw failure.error;
  }

  /** Deletes pool sizes and time-outs that nobody has used for a while, with their maps, chains and rules. */
  async retire(): Promise<void> {
    this.#counts.retire(this.#given.now() - IDLE_MS);
    if (this.#counts.version === this.#version) return;
    const before = this.#ruleset;
    const after = this.#rulesetFor(this.#options);
    for (const some of slices([...amendChains(before, after), ...dropped(before, after)], REMOVALS))
      await this.#mustCommit(some);
    this.#ruleset = after;
    this.#version = this.#counts.version;
  }

  /** When `retire` has something to do again; `undefined`: every size is in use. */
  get retireAfterMs(): number | undefined {
    const { idleSince } = this.#counts;
    return idleSince === undefined ? undefined : Math.max(0, idleSince + IDLE_MS - this.#given.now());
  }

  #rulesetFor(options: TableOptions): Ruleset {
    const shape = this.#counts.shape(options.serviceCidrs.length > 0);
    const ruleset = this.#layout.ruleset(shape, options, this.#ruleset);
    return deepEqual(ruleset, this.#ruleset) ? this.#ruleset : ruleset;
  }
}
