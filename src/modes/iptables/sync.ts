/**
 * The rules of iptables, kept equal to the plan: what changed is compiled before and after, and the difference sent. In doubt
 * the chains are written whole. The kernel is asked for names of chains and for jumps in base chains, and for no other rule.
 */
import { deepEqual } from '../../model/equal.ts';
import type { ServicePortId } from '../../model/serviceTracker.ts';
import type { Plan, ServicePortPlan } from '../../plan/types.ts';
import { type Changes, Reconciler, type Resync, type ServicePortPlans } from '../../proxy/reconciler.ts';
import type { ReportBuilder, SyncReport } from '../../proxy/report.ts';
import { forEachSliced, runSliced } from '../../time/timeSlice.ts';
import type { TableClient } from './rules/client.ts';
import { Drift, type ForeignTouch } from './rules/drift.ts';
import {
  Difference,
  nameChains,
  type Piece,
  piece,
  type SharedChainWrite,
  type Step,
  wholeChains,
} from './rules/edit.ts';
import { ensureForeignRules } from './rules/foreignRules.ts';
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
import { type ChainNames, hasServiceChains, isServiceChain } from './rules/names.ts';
import { Rewrite, type Scope } from './rules/rewrite.ts';
import { TABLES } from './rules/rule.ts';
import { isRefusal, Sender } from './rules/sender.ts';
import { StaleChains } from './rules/staleChains.ts';

/** As kube-proxy: everything is written again, whatever is there. Changes of legacy tables are not notified. */
const REWRITE_INTERVAL_MS = 3_600_000;
/** Between two pieces of it, so that a change never waits for more than one. */
const REWRITE_PAUSE_MS = 2500;
/** All chains but those of single services, which are written before these. */
const SHARED: Scope = { has: (_, chain) => !isServiceChain(chain) };
const noRules = (): RuleCounts => ({ filter: 0, nat: 0, mangle: 0 });

export class IptablesRules extends Reconciler<CompileOptions> {
  readonly #layout: Layout;
  readonly #client: TableClient;
  readonly #now: () => number;
  protected override readonly appliesBesideRefused = true;
  #drift: Drift | undefined;
  #owned = noRules();
  readonly #stale = new StaleChains();
  #beforeSwitch: (() => Promise<void>) | undefined;
  #rewrittenAt: number;
  /** Service ports that the rewrite under way has still to write. */
  #rewriting: ServicePortId[] | undefined;

  constructor(layout: Layout, client: TableClient, options: { readonly now: () => number }) {
    super();
    this.#layout = layout;
    this.#client = client;
    this.#now = options.now;
    this.#rewrittenAt = this.#now();
  }

  /** What another program changed; the next sync repairs it. Returns what of it concerns us, for people. */
  noteForeign(touches: readonly ForeignTouch[]): readonly string[] {
    const { options } = this;
    if (!options) return []; // nothing is written yet
    const drift = this.#drift ?? new Drift(this.#layout, options);
    const objects = drift.note(touches);
    if (objects.length > 0) this.#drift = drift;
    return objects;
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
    const waits = [this.#stale.remainingMs(this.#now()), this.#rewriting && REWRITE_PAUSE_MS].filter(
      (wait) => wait !== undefined,
    );
    return { ...report, retryAfterMs: waits.length > 0 ? Math.min(...waits) : undefined };
  }

  /** Nothing but the rules at the end of one chain depends on the node's addresses. */
  protected override isCompatible(before: CompileOptions, now: CompileOptions): boolean {
    const { nodePortIps: _, ...rest } = now;
    const { nodePortIps: __, ...restBefore } = before;
    return deepEqual(rest, restBefore);
  }

  protected async apply(changes: Changes<CompileOptions>): Promise<boolean> {
    const sender = new Sender(this.#client, changes.report);
    try {
      await this.#repair(changes, sender);
      await this.#send(changes, sender);
      await this.#deleteStale(sender);
      await this.#rewriteSome(changes, sender);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      // Another program has changed our chains, or the kernel refuses a rule: write everything, find out whose.
      return false;
    }
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
      const before = this.#compile(applied.get(id), options);
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
    changes: Changes<CompileOptions>,
  ): Promise<readonly SharedChainWrite[]> {
    const { options } = changes;
    if (chains.length === 0) return [];
    const fragments = compileAll(this.#layout, written(changes), options);
    return this.#runSliced(wholeChains(chains, fragments, this.#layout.base(options).tail));
  }

  #countOwned(report: ReportBuilder): void {
    for (const table of TABLES) report.counts[`owned.${table}`] = this.#owned[table];
  }

  /** Makes what another program touched what it was when we last wrote. */
  async #repair({ options, report, applied }: Changes<CompileOptions>, sender: Sender): Promise<void> {
    let scope = this.#drift;
    this.#drift = undefined;
    const isTailOld = !deepEqual(options.nodePortIps, this.options?.nodePortIps);
    if (isTailOld) {
      scope ??= new Drift(this.#layout, options);
      scope.add(TAIL_CHAIN);
    }
    if (!scope) return;
    const repaired = await this.#rewrite(applied, options, sender, scope);
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

  /** Once an hour everything is written again, a piece at a time: chains of services, and last the chains that lead to them. */
  async #rewriteSome(changes: Changes<CompileOptions>, sender: Sender): Promise<void> {
    if (!this.#rewriting) {
      if (this.#now() - this.#rewrittenAt < REWRITE_INTERVAL_MS || this.isRefused) return;
      this.#rewriting = [...changes.applied.keys()];
    }
    const { options } = changes;
    const ports = written(changes);
    const pieces: Piece[] = [];
    while (pieces.length < this.#client.chainsPerRestore) {
      const id = this.#rewriting.pop();
      if (id === undefined) break;
      for (const { name, rules } of this.#compile(ports.get(id), options).chains)
        pieces.push(piece(id, { writes: [{ name, rules }] }));
    }
    if (pieces.length > 0) return sender.sendWhole({ table: 'nat', pieces });
    this.#rewriting = undefined;
    this.#rewrittenAt = this.#now();
    await this.#rewrite(ports, options, sender, SHARED);
  }

  protected async resync({ plan, options, unwritten, report }: Resync<CompileOptions>): Promise<void> {
    const sender = new Sender(this.#client, report);
    this.#drift = undefined;
    this.#rewriting = undefined;
    const repaired = await this.#rewrite(plan.servicePorts, options, sender);
    if (unwritten) for (const name of repaired) report.repaired.add(name);
    this.#rewrittenAt = this.#now();
    this.#countOwned(report);
  }

  /**
   * Writes chains of these service ports and those that lead to them; without a scope all, finding out what the kernel refuses.
   * Returns the names of chains that were not as we had left them.
   */
  async #rewrite(
    servicePorts: ServicePortPlans,
    options: CompileOptions,
    sender: Sender,
    scope?: Scope,
  ): Promise<Set<string>> {
    const { chainsPerRestore, timeSlice } = this.#client;
    const layout = this.#layout;
    const names = await this.#readNames();
    if (!scope && this.#beforeSwitch && hasServiceChains(names)) await this.#beforeSwitch();
    const owned = noRules();
    const { chains, tail, foreign } = layout.base(options);
    addFragment(owned, { chains, shared: [...tail, ...foreign] }, 1);
    const fragments = compileAll(layout, servicePorts, options, owned);
    const isRefused = (id: ServicePortId): boolean => sender.refused.has(id);
    const wanted = { layout, options, fragments, names, scope, isRefused, chainsPerRestore };
    const rewrite = new Rewrite(wanted);
    const repaired = new Set<string>();
    const isDrift = scope instanceof Drift;
    const send = (step: Step): Promise<void> => {
      if (isDrift) nameChains(repaired, step);
      return scope ? sender.sendWhole(step) : sender.send(step);
    };
    for (const step of rewrite.foundation()) {
      nameChains(repaired, step);
      await sender.sendWhole(step);
    }
    await forEachSliced(rewrite.services(), (step) => step && send(step), timeSlice);
    for (const step of rewrite.entries()) {
      if (isDrift) nameChains(repaired, step);
      await sender.sendShared(step);
    }
    const foreignRules = await ensureForeignRules(this.#client, wanted);
    if (foreignRules.length > 0) sender.countRules(foreignRules.length);
    for (const { table, chain } of foreignRules) repaired.add(`chain ${table} ${chain}`);
    this.#owned = owned;
    // A refused service keeps what it had, so chains that look unused may still be its own.
    if (sender.refused.size > 0 || (scope && this.isRefused)) return repaired;
    this.#stale.clear();
    for (const step of rewrite.garbage()) this.#stale.add(step.table, await sender.trySend(step));
    this.#stale.tried(this.#now());
    return repaired;
  }

  async #readNames(): Promise<ChainNames> {
    const names = new Map<string, ReadonlySet<string>>();
    for (const table of TABLES) names.set(table, await this.#client.chainNames(table));
    return names;
  }

  #compile(port: ServicePortPlan | undefined, options: CompileOptions): Fragment {
    return port ? this.#layout.servicePort(port, options) : EMPTY_FRAGMENT;
  }

  #runSliced<T>(steps: Generator<unknown, T>): Promise<T> {
    this.#client.timeSlice.begin();
    return runSliced(steps, this.#client.timeSlice);
  }
}

/** What the kernel has once these changes are written. */
function written({ plan, ids, applied }: Changes<CompileOptions>): ServicePortPlans {
  const ports = new Map(applied);
  for (const id of ids) {
    const port = plan.servicePorts.get(id);
    if (port) ports.set(id, port);
    else ports.delete(id);
  }
  return ports;
}
