/**
 * Our table, kept equal to the plan: what changed is compiled before and after, and the difference committed, mostly as
 * one transaction. What another program changed is repaired without reading the table, as far as the kernel said what
 * it was.
 */
import { isJunctionError } from '../../errors.ts';
import { deepEqual } from '../../model/equal.ts';
import type { ServicePortId } from '../../model/serviceTracker.ts';
import type { Plan, ServicePortPlan } from '../../plan/types.ts';
import { Reconciler } from '../../proxy/reconciler.ts';
import type { Changes, Resync, ServicePortPlans } from '../../proxy/reconciler.ts';
import { ReportBuilder, type SyncReport } from '../../proxy/report.ts';
import { forEachSliced, runSliced, type TimeSlice } from '../../time/timeSlice.ts';
import { Evictions } from './rules/eviction.ts';
import { Committer, slices } from './rules/committer.ts';
import { compileElements, compileShared, type NftFragment } from './rules/compile.ts';
import { concernedBy, divide, editsFor, idOf, isDivisible, repairs, withoutGaps } from './rules/diff.ts';
import type { InOrder } from './rules/diff.ts';
import { ReferenceCounts } from './rules/referenceCounts.ts';
import { CLEANUP_FAILURES, removal, restructure, resync } from './rules/resync.ts';
import type { DesiredTable, Restructuring } from './rules/resync.ts';
import { fixedElements, type NftSettings, rulesetOf, type TableOptions } from './rules/ruleset.ts';
import { byName, editOperations, editSize } from './rules/table.ts';
import type { Element, ForeignElement, NftClient, Ruleset, TableTransaction } from './rules/table.ts';

interface NftRulesOptions {
  readonly client: NftClient;
  readonly now: () => number;
  readonly timeSlice?: TimeSlice;
  /** Unset: a sync waits until the affinity entries of what it deleted are evicted. */
  readonly wait?: (milliseconds: number) => Promise<void>;
  /** How many elements a transaction has, as long as nothing is known of the kernel's speed. */
  readonly firstChunk?: number;
}

const TRIES = 5;
/** At the clock, which takes longer than to look at an element. */
const ELEMENTS_PER_LOOK = 200;
const PORTS_PER_LOOK = 4;
/**
 * A pool size or a time-out that nobody uses stays for so long. A rollout comes back to most sizes within a moment; and no
 * packet is on its way any more that was led there.
 */
const IDLE_MS = 5000;
/** When to look again whether affinity entries are evicted. */
const EVICTION_MS = 1000;
/** What one transaction removes, so that it does not hold the kernel's lock for long. */
const REMOVALS = 1000;

export class NftRules extends Reconciler<TableOptions> {
  readonly #given: NftRulesOptions;
  readonly #committer: Committer;
  #counts = new ReferenceCounts();
  #ruleset: Ruleset = { sets: [], chains: [] };
  /** Of the counts, when the ruleset was made. */
  #version = 0;
  #foreign: ForeignElement[] = [];
  /** Sets that another program made again; `undefined` where nothing but elements was changed. */
  #foreignSets: Set<string> | undefined;
  readonly #evictions: Evictions;
  /** Of the sync under way. */
  #report = new ReportBuilder();
  /** Names of the chains that it has written. */
  readonly #written = new Set<string>();

  constructor(given: NftRulesOptions) {
    const { client, now, firstChunk } = given;
    super();
    this.#given = given;
    this.#committer = new Committer(client, now, firstChunk, (transaction) => this.#note(transaction));
    this.#evictions = new Evictions({ ...given, committer: new Committer(client, now, firstChunk) });
  }

  #note(transaction: TableTransaction): void {
    this.#report.commits++;
    for (const operation of transaction) if ('chain' in operation) this.#written.add(operation.chain);
  }

  /** Ends when no affinity entry is being evicted any more; `undefined`: none is. */
  get evicting(): Promise<unknown> | undefined {
    return this.#evictions.running;
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
    return this.reconcile(plan, dirty, { ...settings, family: plan.family, view: plan.view });
  }

  protected async apply(changes: Changes<TableOptions>): Promise<boolean> {
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
    if (idleSince !== undefined) report.retryAfter(Math.max(0, idleSince + IDLE_MS - this.#given.now()));
  }

  /** Chains, rules and sets, without reading what is known. Against what was written last, like elements. */
  async #repairStructure(options: TableOptions): Promise<boolean> {
    const only = this.#foreignSets;
    if (!only) return true;
    this.#foreignSets = undefined;
    this.#foreign = this.#foreign.filter(({ element }) => !only.has(element.set));
    return this.#resync(this.#wanted(this.applied, options), only);
  }

  /** What was written last, as far as these elements concern it, by `idOf`. */
  async #wantedFor(
    foreign: readonly ForeignElement[],
    options: TableOptions,
  ): Promise<ReadonlyMap<string, Element>> {
    const wanted = new Map<string, Element>();
    if (foreign.length === 0) return wanted;
    const { timeSlice } = this.#given;
    const sets = new Set(foreign.map(({ element }) => element.set));
    const ids = new Set(foreign.map(({ element }) => idOf(element)));
    const add = (element: Element): void => {
      const id = sets.has(element.set) ? idOf(element) : '';
      if (ids.has(id)) wanted.set(id, element);
    };
    const concerned = concernedBy(foreign);
    await forEachSliced(this.#counts.elements(), add, timeSlice, ELEMENTS_PER_LOOK);
    fixedElements(options).forEach(add);
    await forEachSliced(
      this.applied.values(),
      (port) => {
        if (concerned(port)) compileElements(port, options).elements.forEach(add);
      },
      timeSlice,
    );
    return wanted;
  }

  /** Against what was written last: what has changed since comes after. */
  async #repairElements(options: TableOptions): Promise<boolean> {
    const foreign = this.#foreign;
    this.#foreign = [];
    if (foreign.length === 0) return true;
    const wanted = await this.#wantedFor(foreign, options);
    const transaction = repairs(foreign, byName(this.#ruleset.sets), wanted);
    if (transaction.length === 0) return true;
    const outcome = await this.#committer.attempt(transaction);
    if (outcome.state === 'refused') return false;
    this.#report.objects += foreign.length;
    return true;
  }

  async #change(changes: Changes<TableOptions>): Promise<boolean> {
    const { plan, ids, options, applied } = changes;
    const { timeSlice } = this.#given;
    const compile = (port: ServicePortPlan): NftFragment => compileElements(port, options);
    const all = await editsFor(ids, changes, compile, this.#counts, this.#given);
    const edits = all.filter((edit) => editSize(edit) > 0);
    const before = this.#ruleset;
    // The settings are those of the last full sync, so that the shape alone can have changed.
    const ruleset = this.#counts.version === this.#version ? before : this.#rulesetFor(options);
    const order = await runSliced(withoutGaps(edits), timeSlice);
    const replaced = ids.flatMap((id) => applied.get(id) ?? []);
    this.#evictions.note(replaced, plan);
    this.#ruleset = ruleset; // before the kernel notifies of anything in it
    const transactions = this.#transactions(order, restructure(before, ruleset));
    if ((await this.#committer.attemptAll(transactions)) === 'refused') return false;
    await this.#evict(plan, options);
    this.#report.objects += edits.reduce((sum, edit) => sum + editSize(edit), 0);
    return true;
  }

  async *#transactions(order: InOrder, { first, last }: Restructuring): AsyncGenerator<TableTransaction> {
    const { chunk } = this.#committer;
    const sets = byName(this.#ruleset.sets);
    if (!isDivisible(order, chunk)) {
      // A packet that is on its way sees no rule of a chain that comes with what leads there.
      const isEarlier = first.some(({ kind }) => kind === 'addChain');
      if (isEarlier) yield first;
      yield [...(isEarlier ? [] : first), ...editOperations(order.first, sets), ...last];
      yield editOperations([{ removes: order.last, adds: [] }], sets);
      return;
    }
    const { early, main, late } = await runSliced(divide(order, sets, chunk), this.#given.timeSlice);
    yield first;
    for (const adds of slices(early, chunk)) yield editOperations([{ removes: [], adds }], sets);
    yield last;
    for (const edits of main) yield editOperations(edits, sets);
    for (const removes of slices(late, chunk)) yield editOperations([{ removes, adds: [] }], sets);
  }

  /** Deletes pool sizes and time-outs that nobody has used for a while, with their maps, chains and rules. */
  async #retire(options: TableOptions): Promise<boolean> {
    this.#counts.retire(this.#given.now() - IDLE_MS);
    if (this.#counts.version === this.#version) return true;
    const before = this.#ruleset;
    this.#ruleset = this.#rulesetFor(options);
    const transactions = slices(removal(before, this.#ruleset), REMOVALS);
    return (await this.#committer.attemptAll(transactions)) === 'done';
  }

  protected async resync({ plan, options, applied, isSettled, report }: Resync<TableOptions>): Promise<void> {
    this.#report = report;
    this.#foreign = [];
    this.#foreignSets = undefined;
    // What a service port had that is refused now must still be looked up.
    this.#counts = new ReferenceCounts(
      isSettled ? undefined : { counts: this.#counts, now: this.#given.now() },
    );
    this.#evictions.note(applied.values(), plan);
    await this.#countAll(plan.servicePorts, options);
    this.#ruleset = this.#rulesetFor(options);
    await this.#resync(this.#wanted(plan.servicePorts, options));
    await this.#evict(plan, options);
    this.#end(report);
  }

  async #countAll(servicePorts: ServicePortPlans, options: TableOptions): Promise<void> {
    const count = (port: ServicePortPlan): void => this.#counts.addWritten(compileShared(port, options));
    await forEachSliced(servicePorts.values(), count, this.#given.timeSlice, PORTS_PER_LOOK);
  }

  /** Again from the beginning, where another program changed the table meanwhile. False: something was refused. */
  async #resync(table: DesiredTable, only?: ReadonlySet<string>): Promise<boolean> {
    const options = { ...this.#given, ...table, committer: this.#committer };
    for (let tries = 1; ; tries++) {
      try {
        return await resync({ ...options, ...(tries === 1 && only && { only }) }, this.#report);
      } catch (error) {
        if (!isJunctionError(error, 'NFTABLES_CHANGED') || tries === TRIES) throw error;
      }
    }
  }

  /** What fails, or takes its time, is left for the next sync. */
  async #evict(plan: Plan, { nodeIps = [] }: TableOptions): Promise<void> {
    const outcome = await this.#evictions.evict({ plan, nodeIps, sets: byName(this.#ruleset.sets) });
    if (outcome === 'later') this.#report.retryAfter(EVICTION_MS);
    if (outcome === 'failed') this.#report.count(CLEANUP_FAILURES);
  }

  /** Elements that belong to several service ports, or to none. */
  *#shared(options: TableOptions): Generator<Element> {
    yield* this.#counts.elements();
    yield* fixedElements(options);
  }

  #wanted(servicePorts: ServicePortPlans, options: TableOptions): DesiredTable {
    return {
      ruleset: this.#ruleset,
      shared: () => this.#shared(options),
      servicePorts,
      compile: (port) => compileElements(port, options).elements,
    };
  }

  #rulesetFor(options: TableOptions): Ruleset {
    this.#version = this.#counts.version;
    const ruleset = rulesetOf(this.#counts.shape(options.serviceCidrs.length > 0), options, this.#ruleset);
    return deepEqual(ruleset, this.#ruleset) ? this.#ruleset : ruleset;
  }
}
