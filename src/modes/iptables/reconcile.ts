/** The rules of iptables, kept equal to the plan: what changed is compiled before and after, and the difference sent. */
import { deepEqual } from '../../model/equal.ts';
import type { ServicePortId } from '../../model/serviceTracker.ts';
import type { Plan, ServicePortPlan } from '../../plan/types.ts';
import { Reconciler } from '../../proxy/reconciler.ts';
import type { Changes, Resync } from '../../proxy/reconciler.ts';
import type { ReportBuilder, SyncReport } from '../../proxy/report.ts';
import { forEachSliced, runSliced } from '../../time/timeSlice.ts';
import { readTables, readTouched } from './rules/readState.ts';
import { Difference, nameChains, type SharedChainWrite, wholeChains } from './rules/edit.ts';
import {
  addFragment,
  type ChainRef,
  compileAll,
  type CompileOptions,
  compileOptionsOf,
  EMPTY_FRAGMENT,
  type Fragment,
  type Layout,
  type RuleCounts,
  type StaticOptions,
  TAIL_CHAIN,
} from './rules/fragment.ts';
import { fullSteps } from './rules/resync.ts';
import { hasServiceChains } from './rules/cleanup.ts';
import { type Table, TABLES } from './rules/rule.ts';
import { isRefusal, Sender, type TableClient } from './rules/sender.ts';
import { SaveChainReader, type ChainReader } from './rules/chainReader.ts';
import { StaleChains } from './rules/staleChains.ts';
import { dormantTable, type Touched, TouchedChains } from './rules/touched.ts';

/** Lets packets come again to tables that another program made dormant; returns which. */
export type WakeTables = () => Promise<readonly Table[]>;

interface RulesOptions {
  /** By default what the client prints. */
  readonly reader?: ChainReader | undefined;
  /** For the nft variant. */
  readonly wake?: WakeTables | undefined;
  readonly now: () => number;
}

const noRules = (): RuleCounts => ({ filter: 0, nat: 0, mangle: 0 });

export class IptablesRules extends Reconciler<CompileOptions> {
  readonly #layout: Layout;
  readonly #client: TableClient;
  readonly #reader: ChainReader;
  readonly #wakeTables: WakeTables;
  protected override readonly appliesBesideRefused = true;
  /** Service ports that were written without comments on endpoints. */
  readonly #withoutComments = new Set<ServicePortId>();
  /** What another program changed since the last look, as far as it concerns us. */
  #touched: TouchedChains | undefined;
  #owned = noRules();
  readonly #stale = new StaleChains();
  #beforeSwitch: (() => Promise<void>) | undefined;
  readonly #now: () => number;

  constructor(layout: Layout, client: TableClient, options: RulesOptions) {
    super();
    this.#now = options.now;
    const { reader = new SaveChainReader(client), wake = async () => [] } = options;
    this.#layout = layout;
    this.#client = client;
    this.#reader = reader;
    this.#wakeTables = wake;
  }

  /** What another program changed; the next sync repairs it. Returns what of it concerns us, for people. */
  noteForeign(touched: Touched): readonly string[] {
    const { options } = this;
    // Nothing is written yet, or single chains cannot be read: a look at everything will find this too.
    if (!options || !this.#reader.readChain) {
      this.requestFull();
      return [...touched.keys()].map((table) => `table ${table}`);
    }
    this.#touched ??= new TouchedChains(this.#layout, options);
    return this.#touched.add(touched);
  }

  /** `beforeSwitch`: awaited before the rules of another mode are replaced, while they still forward. */
  async sync(
    plan: Plan,
    dirty: Iterable<ServicePortId>,
    settings: StaticOptions,
    beforeSwitch?: () => Promise<void>,
  ): Promise<SyncReport> {
    this.#beforeSwitch = beforeSwitch;
    const report = await this.reconcile(plan, dirty, compileOptionsOf(plan, settings));
    return { ...report, retryAfterMs: this.#stale.remainingMs(this.#now()) };
  }

  protected override isCompatible(before: CompileOptions, now: CompileOptions): boolean {
    const { endpointComments: _, nodePortIps: ips, ...rest } = now;
    const { endpointComments: __, nodePortIps: ipsBefore, ...restBefore } = before;
    return deepEqual(rest, restBefore) && (this.#reader.readChain !== undefined || deepEqual(ips, ipsBefore));
  }

  protected async apply(changes: Changes<CompileOptions>): Promise<boolean> {
    const sender = new Sender(this.#client, changes.report);
    try {
      await this.#repair(changes, sender);
      await this.#send(changes, sender);
      await this.#deleteStale(sender);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      // Another program has changed our chains, or the kernel refuses a rule: look, repair, find out whose.
      return false;
    }
    this.#noteComments(changes.ids, changes.options);
    this.#countOwned(changes.report);
    return true;
  }

  async #send(changes: Changes<CompileOptions>, sender: Sender): Promise<void> {
    const difference = new Difference();
    const owned = { ...this.#owned };
    await this.#runSliced(this.#compare(changes, difference, owned));
    const whole = await this.#whole(difference.thinned(this.#layout.sharedChains), changes);
    const steps = difference.steps(this.#client.chainsPerRestore, whole);
    for (const step of steps) await sender.sendWhole(step);
    this.#owned = owned;
  }

  /** One service port may have 5,000 endpoints: each of these takes some tens of milliseconds then. */
  *#compare(
    { plan, ids, options, applied }: Changes<CompileOptions>,
    difference: Difference,
    owned: RuleCounts,
  ): Generator<void> {
    for (const id of ids) {
      const before = this.#compileWritten(id, applied.get(id), options);
      yield;
      const after = this.#compile(plan.servicePorts.get(id), options);
      yield;
      this.#stale.take(after.chains);
      difference.add({ owner: id, before, after });
      addFragment(owned, before, -1);
      addFragment(owned, after, 1);
      yield;
    }
  }

  /** These shared chains with the rules of everybody, as they are to be once these service ports are written. */
  async #whole(
    chains: readonly ChainRef[],
    { plan, ids, options }: Changes<CompileOptions>,
  ): Promise<readonly SharedChainWrite[]> {
    if (chains.length === 0) return [];
    const fragments = this.#writtenFragments(options, new Set(ids), plan);
    return this.#runSliced(wholeChains(chains, fragments, this.#layout.base(options).tail));
  }

  #countOwned(report: ReportBuilder): void {
    for (const table of TABLES) report.counts[`owned.${table}`] = this.#owned[table];
  }

  /** Makes what another program touched what it was when we last wrote. */
  async #repair({ options, report }: Changes<CompileOptions>, sender: Sender): Promise<void> {
    let scope = this.#touched;
    this.#touched = undefined;
    const repaired = new Set<string>();
    // Nothing but the rules at the end of one chain depends on these addresses.
    const isTailOld = !deepEqual(options.nodePortIps, this.options?.nodePortIps);
    if (isTailOld) {
      scope ??= new TouchedChains(this.#layout, options);
      scope.addChain(TAIL_CHAIN);
    }
    if (!scope || scope.isEmpty) return;
    const desired = { layout: this.#layout, options, fragments: this.#writtenFragments(options), scope };
    const state = await readTouched(this.#reader, scope);
    const { chainsPerRestore } = this.#client;
    await this.#forEachStep(fullSteps(state, desired, { chainsPerRestore }), async (step) => {
      nameChains(repaired, step);
      if (!step.isGarbage) await sender.sendWhole(step);
      else this.#stale.add(step.table, await sender.trySend(step));
    });
    if (scope.isDormant) await this.#wake(repaired);
    if (isTailOld) repaired.delete(`chain ${TAIL_CHAIN.table} ${TAIL_CHAIN.chain}`);
    for (const name of repaired) report.repaired.add(name);
  }

  /** Those that an earlier sync could not delete, when they are due. */
  async #deleteStale(sender: Sender): Promise<void> {
    const stale = this.#stale;
    if (!stale.isDue(this.#now())) return;
    for (const step of stale.takeSteps(this.#client.chainsPerRestore))
      stale.add(step.table, await sender.trySend(step));
    stale.tried(this.#now());
  }

  async #wake(repaired: Set<string>): Promise<void> {
    for (const table of await this.#wakeTables()) repaired.add(dormantTable(table));
  }

  /** As they were last written; `changed`: these as the plan has them. */
  *#writtenFragments(
    options: CompileOptions,
    changed: ReadonlySet<ServicePortId> = new Set(),
    plan?: Plan,
  ): Generator<readonly [ServicePortId, Fragment]> {
    const { applied } = this;
    for (const id of new Set([...applied.keys(), ...changed]))
      if (changed.has(id)) yield [id, this.#compile(plan?.servicePorts.get(id), options)];
      else yield [id, this.#compileWritten(id, applied.get(id), options)];
  }

  #compileWritten(id: ServicePortId, port: ServicePortPlan | undefined, options: CompileOptions): Fragment {
    const endpointComments = !this.#withoutComments.has(id);
    return this.#compile(
      port,
      options.endpointComments === endpointComments ? options : { ...options, endpointComments },
    );
  }

  #compile(port: ServicePortPlan | undefined, options: CompileOptions): Fragment {
    return port ? this.#layout.servicePort(port, options) : EMPTY_FRAGMENT;
  }

  #noteComments(ids: Iterable<ServicePortId>, { endpointComments }: CompileOptions): void {
    for (const id of ids)
      if (endpointComments) this.#withoutComments.delete(id);
      else this.#withoutComments.add(id);
  }

  protected async resync({ plan, options, unwritten, report }: Resync<CompileOptions>): Promise<void> {
    const sender = new Sender(this.#client, report);
    this.#touched = undefined;
    const owned = noRules();
    const { chains, tail, foreign } = this.#layout.base(options);
    addFragment(owned, { chains, shared: [...tail, ...foreign] }, 1);
    const fragments = compileAll(this.#layout, plan.servicePorts, options, owned);
    const state = await readTables(this.#reader, {
      layout: this.#layout,
      servicePorts: plan.servicePorts,
      options,
      timeSlice: this.#client.timeSlice,
    });
    if (this.#beforeSwitch && hasServiceChains(state)) await this.#beforeSwitch();
    const wanted = { layout: this.#layout, options, fragments };
    const steps = fullSteps(state, wanted, { chainsPerRestore: this.#client.chainsPerRestore });
    this.#stale.names = [];
    await this.#forEachStep(steps, async (step) => {
      if (unwritten) nameChains(report.repaired, step, unwritten);
      if (!step.isGarbage) await sender.send(step);
      // A refused service keeps what it had, so chains that look unused may still be its own.
      else if (sender.refused.size === 0) this.#stale.add(step.table, await sender.trySend(step));
    });
    this.#stale.tried(this.#now());
    await this.#wake(report.repaired);
    this.#owned = owned;
    this.#withoutComments.clear();
    this.#noteComments(plan.servicePorts.keys(), options);
    this.#countOwned(report);
  }

  /** `undefined` among the steps: others may have their turn. */
  #forEachStep<T>(steps: Iterable<T | undefined>, work: (step: T) => void | Promise<void>): Promise<void> {
    return forEachSliced(steps, (step) => (step ? work(step) : undefined), this.#client.timeSlice);
  }

  #runSliced<T>(steps: Generator<unknown, T>): Promise<T> {
    this.#client.timeSlice?.begin();
    return runSliced(steps, this.#client.timeSlice);
  }
}
