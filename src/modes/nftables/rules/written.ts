/**
 * One table of ours, and what was written into it. A change compiles each service port before and after, and commits the
 * difference. Nothing is read back.
 */
import { JunctionError } from '../../../errors.ts';
import { deepEqual } from '../../../model/equal.ts';
import type { ServicePortId } from '../../../model/serviceTracker.ts';
import type { ServicePortPlan, ServicePortPlans } from '../../../plan/types.ts';
import { forEachSliced, runSliced, type TimeSlice } from '../../../time/timeSlice.ts';
import { compileElements, NO_ELEMENTS, type NftFragment, partsOf, type TablePart } from './compile.ts';
import { ReferenceCounts } from './counts.ts';
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
import { fixedElements, rulesetOf, type TableOptions, type TableShape } from './ruleset.ts';
import { addChains, addSets, byName, editOperations, editSize, slices } from './table.ts';
import type {
  Element,
  ElementEdit,
  NftClient,
  Ruleset,
  TableTransaction,
  TransactionOutcome,
  TransactionRefusal,
} from './table.ts';

/** What a table has of a service port, and besides. */
export interface Layout {
  compile(port: ServicePortPlan, options: TableOptions): NftFragment;
  /** Alone. */
  parts(port: ServicePortPlan): readonly TablePart[];
  ruleset(shape: TableShape, options: TableOptions, before: Ruleset): Ruleset;
  /** What comes from the node and its settings. */
  fixed(options: TableOptions): readonly Element[];
}

const SERVICES: Layout = {
  compile: compileElements,
  parts: partsOf,
  ruleset: rulesetOf,
  fixed: fixedElements,
};

export interface WrittenTableOptions {
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
/** With more of them, the service ports are not the cause: a kernel takes some 20 ms to refuse a transaction. */
const MAX_REFUSED = 100;
const PORTS_PER_LOOK = 4;
/** Of a frontend, besides those of its endpoints: its address, twice. */
const SHARED_ELEMENTS = 2;
/**
 * A pool size or a time-out that nobody uses stays for so long. A rollout comes back to most sizes within a moment; and no
 * packet is on its way any more that was led there.
 */
const IDLE_MS = 5000;
/** What one transaction removes, so that it does not hold the kernel's lock for long. */
const REMOVALS = 1000;
/** One commit should hold the lock no longer than twice this, also when the next elements are slower than the last. */
const LONG_MS = 25;
const FIRST_ELEMENTS = 2000;
/** More of them, while they wait for the kernel, are more than the young generation holds. */
const MAX_ELEMENTS = 5000;
const MIN_ELEMENTS = 200;

export class WrittenTable {
  readonly name: string;
  readonly client: NftClient;
  readonly #given: WrittenTableOptions;
  readonly #layout: Layout;
  readonly #ports = new Map<ServicePortId, ServicePortPlan>();
  readonly #counts = new ReferenceCounts();
  /** As the kernel has it. */
  #ruleset = EMPTY;
  /** Of the counts, when the ruleset was last equal to what they ask for. */
  #version = -1;
  #options: TableOptions;
  #chunk = FIRST_ELEMENTS;
  /** Packets come by. */
  isInForce = false;
  /** Elements that were added or deleted. */
  objects = 0;

  constructor(given: WrittenTableOptions, options: TableOptions) {
    this.#given = given;
    this.#layout = given.layout ?? SERVICES;
    this.name = given.name;
    this.client = given.client;
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
    const { timeSlice, now } = this.#given;
    const partsOnly = (port: ServicePortPlan): NftFragment => ({
      ...NO_ELEMENTS,
      parts: this.#layout.parts(port),
    });
    // All sets, chains and rules first, in their order.
    const use = (port: ServicePortPlan): void => this.#counts.add(partsOnly(port));
    await forEachSliced(ports.values(), use, timeSlice, PORTS_PER_LOOK);
    const ruleset = this.#rulesetFor(this.#options);
    this.#ruleset = { sets: [], chains: ruleset.chains.filter(({ hook }) => hook) };
    const fixed = { owner: undefined, removes: [], adds: this.#layout.fixed(this.#options) };
    const failure = await this.#commit([fixed], ruleset);
    if (failure) throw failure.error;
    const refused = new Map<ServicePortId, Error>();
    for (const ids of this.#groups(ports))
      for (const [id, error] of await this.change(ids, ports)) refused.set(id, error);
    const release = (port: ServicePortPlan): void => this.#counts.remove(partsOnly(port), now());
    await forEachSliced(ports.values(), release, timeSlice, PORTS_PER_LOOK);
    const kept = [...refused.keys()].filter((id) => fallback.has(id));
    if (kept.length > 0) await this.change(kept, fallback);
    return refused;
  }

  /** Of about as many elements as a transaction should have. */
  *#groups(ports: ServicePortPlans): Generator<readonly ServicePortId[]> {
    let group: ServicePortId[] = [];
    let size = 0;
    for (const [id, { frontends, pools }] of ports) {
      group.push(id);
      size += frontends.length * (SHARED_ELEMENTS + (pools.cluster ?? pools.local ?? []).length);
      if (size < this.#chunk) continue;
      yield group;
      group = [];
      size = 0;
    }
    yield group;
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
      if (!this.isInForce && refused.size > MAX_REFUSED) throw outcome.error;
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
    const chunk = this.#chunk;
    // Where no packet comes by, a service port's edit stays whole, so that a refusal finds its owner.
    const isLarge = this.isInForce && isDivisible(order, chunk);
    // A packet that is on its way sees no rule of a chain that comes with what leads there.
    if (first.length > 0 && (isLarge || newChains.length > 0)) {
      const failure = await this.#refused(first);
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
        if (index === earlyParts) await this.commit(last, true);
        await this.commit(editOperations(part, sets), true);
      }
    } else {
      const failure = await this.#refused([...first, ...editOperations(order.first, sets), ...last]);
      if (failure) return failure;
      await this.commit(editOperations([{ removes: order.last, adds: [] }], sets), true);
    }
    for (const some of slices(dropped(this.#ruleset, after), REMOVALS)) await this.commit(some, true);
    this.#ruleset = after;
    this.objects += edits.reduce((sum, edit) => sum + editSize(edit), 0);
    return undefined;
  }

  async #refused(transaction: TableTransaction): Promise<Refusal | undefined> {
    const outcome = await this.attempt(transaction);
    return outcome.state === 'done' ? undefined : refusalOf(outcome, true);
  }

  /** Throws when it is refused. In the middle of a change, what is in the table is known no more then. */
  async commit(transaction: TableTransaction, isInMiddle = false): Promise<void> {
    const outcome = await this.attempt(transaction);
    if (outcome.state === 'refused') throw refusalOf(outcome, !isInMiddle).error;
  }

  async attempt(transaction: TableTransaction): Promise<TransactionOutcome> {
    if (transaction.length === 0) return { state: 'done' };
    const { now, onCommit } = this.#given;
    const started = now();
    const outcome = await this.client.commit(transaction);
    if (outcome.state === 'refused') return outcome;
    onCommit?.(transaction);
    const sizes = transaction.map((each) => ('elements' in each ? each.elements.length : 0));
    if (sizes.reduce((sum, size) => sum + size, 0) >= this.#chunk / 2) this.#learn(now() - started);
    return outcome;
  }

  #learn(milliseconds: number): void {
    if (milliseconds > LONG_MS) this.#chunk = Math.max(MIN_ELEMENTS, this.#chunk >> 1);
    else if (milliseconds < LONG_MS / 2) this.#chunk = Math.min(MAX_ELEMENTS, this.#chunk * 2);
  }

  /** How many elements a transaction should have. It differs from machine to machine, so it is measured. */
  get chunk(): number {
    return this.#chunk;
  }

  /** Deletes pool sizes and time-outs that nobody has used for a while, with their maps, chains and rules. */
  async retire(): Promise<void> {
    this.#counts.retire(this.#given.now() - IDLE_MS);
    if (this.#counts.version === this.#version) return;
    const before = this.#ruleset;
    const after = this.#rulesetFor(this.#options);
    for (const some of slices([...amendChains(before, after), ...dropped(before, after)], REMOVALS))
      await this.commit(some, true);
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

interface Refusal {
  readonly error: JunctionError;
  /** One of the service ports may be the cause. */
  readonly isExplicable: boolean;
}

/** The table is not as it was written. */
const CONTRADICTIONS: ReadonlySet<string> = new Set(['ENOENT', 'EEXIST']);
/** In words, where the kernel's name for it says too little. */
const REASONS: Readonly<Record<string, string>> = {
  ENOMEM: 'the kernel is out of memory (ENOMEM)',
  ENOBUFS: 'the kernel has no buffers left (ENOBUFS)',
  EPERM: 'another process owns the table (EPERM)',
};

export function refusalOf({ name, operation }: TransactionRefusal, mayBeExplained: boolean): Refusal {
  const reason = REASONS[name] ?? name;
  if (name === 'EPERM')
    return { error: new JunctionError('NFTABLES_OWNED', `nftables: ${reason}`), isExplicable: false };
  // A rule may also ask for something that this kernel does not have.
  const isContradiction = CONTRADICTIONS.has(name) && operation?.kind !== 'addRule';
  if (mayBeExplained && !isContradiction) {
    const detail = JSON.stringify(operation)?.slice(0, 2000) ?? '';
    const error = new JunctionError('NFTABLES_REFUSED', `nftables refuses a change: ${reason}`, { detail });
    return { error, isExplicable: true };
  }
  const text = `nftables: the table is not as it was written: ${reason}`;
  return { error: new JunctionError('NFTABLES_CHANGED', text), isExplicable: false };
}
