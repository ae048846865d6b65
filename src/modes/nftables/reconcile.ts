/**
 * Our table, kept equal to the plan: what changed is compiled before and after, and the difference committed, mostly as
 * one transaction. What another program changed is repaired without reading the table, as far as the kernel said what
 * it was.
 */
import { isJunctionError } from '../../errors.ts';
import { deepEqual } from '../../model/equal.ts';
import { PROTOCOLS, type Protocol } from '../../model/objects.ts';
import type { ServicePortId } from '../../model/serviceTracker.ts';
import type { Plan, ServicePortPlan } from '../../plan/types.ts';
import {
  type Changes,
  type Reconcilable,
  Reconciler,
  type Resync,
  type ServicePortPlans,
} from '../../proxy/reconciler.ts';
import { ReportBuilder, type SyncAttempt, type SyncReport } from '../../proxy/report.ts';
import { forEachSliced, runSliced, type TimeSlice } from '../../time/timeSlice.ts';
import { evictStale, protocolsToEvict } from './rules/affinity.ts';
import { Committer, slices } from './rules/committer.ts';
import { compileElements, compileShared, NO_ELEMENTS, type NftFragment } from './rules/compile.ts';
import {
  concernedBy,
  diffElements,
  type ElementEdit,
  editOperations,
  type ForeignElement,
  type InOrder,
  isEmptyEdit,
  repairs,
  removal,
  restructure,
  type Restructuring,
  editSize,
  withoutGaps,
} from './rules/diff.ts';
import { type DesiredTable, resync } from './rules/resync.ts';
import { type Element, type Ruleset, setsByName } from './rules/rule.ts';
import { divide, inTransactions, isDivisible } from './rules/portions.ts';
import { printKey } from './rules/print.ts';
import { fixedElements, type NftSettings, rulesetOf, type TableOptions } from './rules/ruleset.ts';
import { ReferenceCounts } from './rules/referenceCounts.ts';
import { chainsIn, type NftClient, type TableTransaction } from './rules/transaction.ts';

interface NftRulesOptions {
  readonly client: NftClient;
  readonly now: () => number;
  readonly timeSlice?: TimeSlice;
  /** How many elements a transaction has, as long as nothing is known of the kernel's speed. */
  readonly firstChunk?: number;
}

/** In a report: something that nothing looks up any more could not be deleted. */
export const CLEANUP_FAILURES = 'cleanup.failures';

const TRIES = 5;
/**
 * A pool size or a time-out that nobody uses stays for so long. A rollout comes back to most sizes within a moment; and no
 * packet is on its way any more that was led there.
 */
const IDLE_MS = 5000;
/** What one transaction removes, so that it does not hold the kernel's lock for long. */
const REMOVALS = 1000;

export class NftRules implements Reconcilable<TableOptions> {
  readonly #client: NftClient;
  readonly #committer: Committer;
  readonly #timeSlice: TimeSlice | undefined;
  readonly #now: () => number;
  readonly #reconciler = new Reconciler<TableOptions>(this);
  #counts = new ReferenceCounts();
  #ruleset: Ruleset = { sets: [], chains: [] };
  /** Of the counts, when the ruleset was made. */
  #version = 0;
  #foreign: ForeignElement[] = [];
  /** Sets that another program made again; `undefined` where nothing but elements was changed. */
  #foreignSets: Set<string> | undefined;
  /** Protocols of which some client may have an affinity entry that it should not have; at the start all. */
  readonly #toEvict = new Set<Protocol>(PROTOCOLS);
  /** Of the sync under way. */
  #report = new ReportBuilder();
  /** Names of the chains that it has written. */
  readonly #written = new Set<string>();

  constructor({ client, now, timeSlice, firstChunk }: NftRulesOptions) {
    this.#client = noting(client, (transaction) => {
      this.#report.commits++;
      for (const name of chainsIn(transaction)) this.#written.add(name);
    });
    this.#committer = new Committer(this.#client, now, firstChunk);
    this.#now = now;
    this.#timeSlice = timeSlice;
  }

  get attempt(): SyncAttempt {
    return this.#reconciler.attempt;
  }

  requestFull(): void {
    this.#reconciler.requestFull();
  }

  /** The next sync repairs these, without reading anything. */
  noteForeign(elements: readonly ForeignElement[]): void {
    this.#foreign.push(...elements);
  }

  /** The next sync looks at chains, rules and sets; of these sets, at what is in them too. */
  noteStructure(sets: Iterable<string>): void {
    this.#foreignSets = new Set([...(this.#foreignSets ?? []), ...sets]);
  }

  /** The table as it was last written. */
  get ruleset(): Ruleset {
    return this.#ruleset;
  }

  sync(plan: Plan, dirty: Iterable<ServicePortId>, settings: NftSettings): Promise<SyncReport> {
    this.#written.clear();
    return this.#reconciler.sync(plan, dirty, { ...settings, family: plan.family, view: plan.view });
  }

  async apply(changes: Changes<TableOptions>): Promise<boolean> {
    const { options, report } = changes;
    this.#report = report;
    const isApplied =
      (await this.#repairStructure(options)) &&
      (await this.#repairElements(options)) &&
      (await this.#change(changes)) &&
      (await this.#retire(options));
    this.#end(report);
    return isApplied;
  }

  #end(report: ReportBuilder): void {
    report.counts['chains'] = this.#written.size;
    const { idleSince } = this.#counts;
    if (idleSince !== undefined) report.retryAfter(Math.max(0, idleSince + IDLE_MS - this.#now()));
  }

  /** Chains, rules and sets, without reading what is known. Against what was written last, like elements. */
  async #repairStructure(options: TableOptions): Promise<boolean> {
    const only = this.#foreignSets;
    if (!only) return true;
    this.#foreignSets = undefined;
    this.#foreign = this.#foreign.filter(({ element }) => !only.has(element.set));
    return this.#resync(this.#wanted(this.#reconciler.applied, options), only);
  }

  /** Against what was written last: what has changed since comes after. */
  async #repairElements(options: TableOptions): Promise<boolean> {
    const foreign = this.#foreign;
    this.#foreign = [];
    if (foreign.length === 0) return true;
    const wanted = new Map<string, Element>();
    const shared = [...this.#counts.elements(), ...fixedElements(options)];
    for (const element of shared) wanted.set(`${element.set} ${printKey(element.key)}`, element);
    const concerned = concernedBy(foreign);
    await this.#forEachSliced(this.#reconciler.applied.values(), (port) => {
      if (!concerned(port)) return;
      for (const element of compileElements(port, options).elements)
        wanted.set(`${element.set} ${printKey(element.key)}`, element);
    });
    const transaction = repairs(foreign, setsByName(this.#ruleset), (set, { key }) =>
      wanted.get(`${set} ${printKey(key)}`),
    );
    if (transaction.length === 0) return true;
    const outcome = await this.#client.commit(transaction);
    if (outcome.state === 'refused') return false;
    this.#report.objects += foreign.length;
    return true;
  }

  async #change({ plan, ids, options, applied }: Changes<TableOptions>): Promise<boolean> {
    const edits: ElementEdit[] = [];
    const left: ServicePortPlan[] = [];
    this.#timeSlice?.begin();
    for (const id of ids) {
      const before = applied.get(id);
      const after = plan.servicePorts.get(id);
      const [old, now] = [compile(before, options), compile(after, options)];
      this.#counts.add(now); // first: what both use is not idle in between
      this.#counts.remove(old, this.#now());
      const difference = await runSliced(diffElements(old.elements, now.elements), this.#timeSlice);
      edits.push({ owner: id, ...difference });
      if (before?.affinitySeconds !== undefined) left.push(before);
    }
    const { added, removed } = this.#counts.takeChanges();
    edits.push({ owner: undefined, removes: removed, adds: added });
    const before = this.#ruleset;
    // The settings are those of the last full sync, so that the shape alone can have changed.
    const ruleset = this.#counts.version === this.#version ? before : this.#rulesetFor(options);
    const changes = edits.filter((edit) => !isEmptyEdit(edit));
    const order = await runSliced(withoutGaps(changes), this.#timeSlice);
    for (const protocol of protocolsToEvict(left, plan)) this.#toEvict.add(protocol);
    this.#ruleset = ruleset; // before the kernel notifies of anything in it
    for await (const transaction of this.#transactions(order, restructure(before, ruleset))) {
      const outcome = await this.#committer.attempt(transaction);
      if (outcome.state === 'refused') return false;
    }
    await this.#evict(plan, options);
    this.#report.objects += changes.reduce((sum, edit) => sum + editSize(edit), 0);
    return true;
  }

  async *#transactions(order: InOrder, { first, last }: Restructuring): AsyncGenerator<TableTransaction> {
    const { chunk } = this.#committer;
    const sets = setsByName(this.#ruleset);
    if (!isDivisible(order, chunk)) {
      // A packet that is on its way sees no rule of a chain that comes with what leads there.
      const isEarlier = first.some(({ kind }) => kind === 'addChain');
      if (isEarlier) yield first;
      yield [...(isEarlier ? [] : first), ...editOperations(order.first, sets), ...last];
      yield editOperations(order.last, sets);
      return;
    }
    const { early, main, late } = await runSliced(divide(order, sets, chunk), this.#timeSlice);
    yield first;
    yield* inTransactions(early, sets, chunk);
    yield last;
    for (const edits of main) yield editOperations(edits, sets);
    yield* inTransactions(late, sets, chunk);
  }

  /** Deletes pool sizes and time-outs that nobody has used for a while, with their maps, chains and rules. */
  async #retire(options: TableOptions): Promise<boolean> {
    this.#counts.retire(this.#now() - IDLE_MS);
    if (this.#counts.version === this.#version) return true;
    const before = this.#ruleset;
    this.#ruleset = this.#rulesetFor(options);
    for (const transaction of slices(removal(before, this.#ruleset), REMOVALS)) {
      const outcome = await this.#client.commit(transaction);
      if (outcome.state === 'refused') return false;
    }
    return true;
  }

  async resync({ plan, options, applied, isSettled, report }: Resync<TableOptions>): Promise<void> {
    this.#report = report;
    this.#foreign = [];
    this.#foreignSets = undefined;
    // What a service port had that is refused now must still be looked up.
    this.#counts = new ReferenceCounts(isSettled ? undefined : { counts: this.#counts, now: this.#now() });
    for (const protocol of protocolsToEvict(applied.values(), plan)) this.#toEvict.add(protocol);
    await this.#forEachSliced(plan.servicePorts.values(), (port) =>
      this.#counts.add(compileShared(port, options)),
    );
    this.#counts.takeChanges();
    this.#ruleset = this.#rulesetFor(options);
    await this.#resync(this.#wanted(plan.servicePorts, options));
    await this.#evict(plan, options);
    this.#end(report);
  }

  /** Again from the beginning, where another program changed the table meanwhile. False: something was refused. */
  async #resync(table: DesiredTable, only?: ReadonlySet<string>): Promise<boolean> {
    const [client, committer, timeSlice] = [this.#client, this.#committer, this.#timeSlice];
    for (let tries = 1; ; tries++) {
      try {
        const some = tries === 1 && only && { only };
        const { elements, refused, isClean } = await resync({ client, committer, table, timeSlice, ...some });
        this.#report.objects += elements;
        for (const [id, error] of refused) this.#report.refused.set(id, error);
        if (!isClean) this.#report.count(CLEANUP_FAILURES);
        return refused.size === 0;
      } catch (error) {
        if (!isJunctionError(error, 'NFTABLES_CHANGED') || tries === TRIES) throw error;
      }
    }
  }

  /** What fails is left for the next sync. */
  async #evict(plan: Plan, { nodeIps = [] }: TableOptions): Promise<void> {
    if (this.#toEvict.size === 0) return;
    const sets = setsByName(this.#ruleset);
    const { chunk } = this.#committer;
    const [client, timeSlice] = [this.#client, this.#timeSlice];
    const { isDone } = await evictStale(this.#toEvict, { client, plan, nodeIps, sets, chunk, timeSlice });
    if (isDone) this.#toEvict.clear();
    else this.#report.count(CLEANUP_FAILURES);
  }

  #wanted(servicePorts: ServicePortPlans, options: TableOptions): DesiredTable {
    return {
      ruleset: this.#ruleset,
      shared: [...this.#counts.elements(), ...fixedElements(options)],
      servicePorts,
      compile: (port) => compileElements(port, options).elements,
    };
  }

  #rulesetFor(options: TableOptions): Ruleset {
    this.#version = this.#counts.version;
    const ruleset = rulesetOf(this.#counts.shape(options.serviceCidrs.length > 0), options, this.#ruleset);
    return deepEqual(ruleset, this.#ruleset) ? this.#ruleset : ruleset;
  }

  #forEachSliced<T>(items: Iterable<T>, work: (item: T) => void | Promise<void>): Promise<void> {
    return forEachSliced(items, work, this.#timeSlice);
  }
}

function compile(port: ServicePortPlan | undefined, options: TableOptions): NftFragment {
  return port ? compileElements(port, options) : NO_ELEMENTS;
}

/** Calls `onDone` with every transaction that was committed. */
function noting(client: NftClient, onDone: (transaction: TableTransaction) => void): NftClient {
  return {
    inspect: (wanted, only) => client.inspect(wanted, only),
    affinityEntries: (protocol) => client.affinityEntries(protocol),
    commit: async (transaction) => {
      const outcome = await client.commit(transaction);
      if (outcome.state === 'done') onDone(transaction);
      return outcome;
    },
  };
}
