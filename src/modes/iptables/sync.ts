/**
 * The rules of iptables, kept equal to the plan: what changed is compiled before and after, and the difference committed. At a
 * start, after a failure or a refusal, and on request the chains are written whole. The kernel is asked for names of chains and
 * for jumps in base chains, and for no other rule.
 */
import { deepEqual } from '../../model/equal.ts';
import type { ServicePortId } from '../../model/serviceTracker.ts';
import type { Plan, ServicePortPlan, ServicePortPlans } from '../../plan/types.ts';
import { ReportBuilder, type SyncAttempt, type SyncReport } from '../../proxy/report.ts';
import { forEachSliced, runSliced } from '../../time/timeSlice.ts';
import { Committer, isRefusal, type TableClient } from './rules/commit.ts';
import { Difference, nameChains, type Piece, piece, type Step } from './rules/edit.ts';
import { ensureForeignRules } from './rules/foreignRules.ts';
import {
  addFragment,
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
import { Drift, type ForeignTouch, Rewrite, type Scope } from './rules/rewrite.ts';
import { TABLES } from './rules/rule.ts';

/** One sync. */
interface Round {
  readonly plan: Plan;
  readonly options: CompileOptions;
  /** Service ports that may differ from what was last written. */
  readonly ids: readonly ServicePortId[];
  readonly report: ReportBuilder;
  readonly committer: Committer;
}

/** As kube-proxy: everything is written again, whatever is there. Changes of legacy tables are not notified. */
const REWRITE_INTERVAL_MS = 3_600_000;
/** Between two pieces of it, so that a change never waits for more than one. */
const REWRITE_PAUSE_MS = 2500;
/** All chains but those of single services, which are written before these. */
const SHARED: Scope = { has: (_, chain) => !isServiceChain(chain) };
const noRules = (): RuleCounts => ({ filter: 0, nat: 0, mangle: 0 });

interface SyncOptions {
  readonly layout: Layout;
  readonly client: TableClient;
  readonly now: () => number;
  /** What the rules depend on besides the plan; asked for at each sync. */
  readonly settings: (plan: Plan) => StaticOptions;
  /** How many endpoints and frontends; unset: all that changed. */
  readonly writesPerSync?: number | undefined;
  /** Whether counters were missing that rules count into: the kernel refuses such rules. */
  readonly makeMissingCounters?: () => boolean;
}

export class IptablesSync {
  readonly writesPerSync: number | undefined;
  readonly #given: SyncOptions;
  readonly #layout: Layout;
  readonly #client: TableClient;
  readonly #now: () => number;
  /** As they were last written. */
  #applied = new Map<ServicePortId, ServicePortPlan>();
  /** Those of the last sync that succeeded. */
  #options: CompileOptions | undefined;
  #needsRewrite = true;
  /** Apart from `#needsRewrite`, so that a request during a sync is not lost at its end. */
  #isRewriteRequested = false;
  /** By the kernel; what they had before stays. */
  #refused: ReadonlyMap<ServicePortId, Error> = new Map();
  #attempt: SyncAttempt = 'full';
  #drift: Drift | undefined;
  #owned = noRules();
  #beforeSwitch: (() => Promise<void>) | undefined;
  #rewrittenAt: number;
  /** Service ports that the hourly rewrite has still to write. */
  #rewriting: ServicePortId[] | undefined;

  constructor(options: SyncOptions) {
    this.#given = options;
    this.#layout = options.layout;
    this.#client = options.client;
    this.#now = options.now;
    this.writesPerSync = options.writesPerSync;
    this.#rewrittenAt = this.#now();
  }

  /** How the last sync was attempted, also if it failed. */
  get attempt(): SyncAttempt {
    return this.#attempt;
  }

  /** The next sync writes everything. */
  requestFull(): void {
    this.#isRewriteRequested = true;
  }

  /** What another program changed; the next sync repairs it. Returns what of it concerns us, for people. */
  noteForeign(touches: readonly ForeignTouch[]): readonly string[] {
    if (!this.#options) return []; // nothing is written yet
    const drift = this.#drift ?? new Drift(this.#layout, this.#options);
    const objects = drift.note(touches);
    if (objects.length > 0) this.#drift = drift;
    return objects;
  }

  async sync(plan: Plan, dirty: Iterable<ServicePortId>): Promise<SyncReport> {
    const ids = [...dirty];
    const { makeMissingCounters = () => false } = this.#given;
    try {
      const report = await this.write(plan, ids);
      if (report.refused.size === 0 || !makeMissingCounters()) return report;
    } catch (error) {
      if (!makeMissingCounters()) throw error;
    }
    this.requestFull();
    return this.write(plan, ids);
  }

  /** `beforeSwitch`: awaited before the rules of another mode are replaced, while they still forward. */
  async write(
    plan: Plan,
    ids: readonly ServicePortId[],
    beforeSwitch?: () => Promise<void>,
  ): Promise<SyncReport> {
    this.#beforeSwitch = beforeSwitch;
    const options = compileOptionsOf(plan, this.#given.settings(plan));
    const report = new ReportBuilder();
    const committer = new Committer(this.#client, report);
    const round: Round = { plan, options, ids, report, committer };
    const isKnown = !this.#needsRewrite && this.#isCompatible(options);
    const isSettled = isKnown && this.#refused.size === 0;
    const canApply = isKnown && !this.#isRewriteRequested && !ids.some((id) => this.#refused.has(id));
    this.#attempt = canApply ? 'partial' : 'full';
    this.#needsRewrite = true; // until all of it is in the kernel
    if (canApply && (await this.#apply(round))) {
      update(this.#applied, round);
      this.#refused = new Map([...this.#refused, ...report.refused]);
      for (const [id, error] of this.#refused) report.refused.set(id, error);
    } else {
      if (canApply) report.count('partial.failures');
      this.#attempt = 'full';
      await this.#rewriteAll(round, isSettled);
      this.#applied = new Map(plan.servicePorts);
      this.#refused = report.refused;
    }
    this.#options = options;
    this.#needsRewrite = false;
    for (const table of TABLES) report.counts[`owned.${table}`] = this.#owned[table];
    if (this.#rewriting) report.retryAfter(REWRITE_PAUSE_MS);
    return report.end(this.#attempt);
  }

  /** Nothing but the rules at the end of one chain depends on the node's addresses. */
  #isCompatible(now: CompileOptions): boolean {
    return (
      this.#options !== undefined &&
      deepEqual({ ...now, nodePortIps: 'all' }, { ...this.#options, nodePortIps: 'all' })
    );
  }

  /** Writes the difference. False: everything has to be written. */
  async #apply(round: Round): Promise<boolean> {
    try {
      await this.#repair(round);
      await this.#commitChanges(round);
      await this.#rewriteSome(round);
      return true;
    } catch (error) {
      if (!isRefusal(error)) throw error;
      // Another program has changed our chains, or the kernel refuses a rule: write everything, find out whose.
      return false;
    }
  }

  /** Makes what another program touched what it was when we last wrote. */
  async #repair({ options, report, committer }: Round): Promise<void> {
    let scope = this.#drift;
    this.#drift = undefined;
    const isTailOld = !deepEqual(options.nodePortIps, this.#options?.nodePortIps);
    if (isTailOld) {
      scope ??= new Drift(this.#layout, options);
      scope.add(TAIL_CHAIN);
    }
    if (!scope) return;
    const repaired = await this.#rewrite(this.#applied, options, committer, scope);
    if (isTailOld) repaired.delete(`chain ${TAIL_CHAIN.table} ${TAIL_CHAIN.chain}`);
    for (const name of repaired) report.repaired.add(name);
  }

  async #commitChanges(round: Round): Promise<void> {
    const difference = new Difference();
    const owned = { ...this.#owned };
    this.#client.timeSlice.begin();
    await runSliced(this.#compare(round, difference, owned), this.#client.timeSlice);
    if (difference.removesMany) {
      await this.#rewrite(this.#written(round), round.options, round.committer, difference);
      return;
    }
    for (const step of difference.steps(this.#client.chainsPerRestore)) await round.committer.commit(step);
    this.#owned = owned;
  }

  /** One service port may have 5,000 endpoints: each of these takes some tens of milliseconds then. */
  *#compare({ plan, ids, options }: Round, difference: Difference, owned: RuleCounts): Generator<void> {
    for (const owner of ids) {
      const before = this.#compile(this.#applied.get(owner), options);
      yield;
      const after = this.#compile(plan.servicePorts.get(owner), options);
      yield;
      difference.add({ owner, before, after });
      addFragment(owned, before, -1);
      addFragment(owned, after, 1);
      yield;
    }
  }

  /** Once an hour everything is written again, a piece at a time: chains of services, and last the chains that lead to them. */
  async #rewriteSome(round: Round): Promise<void> {
    if (!this.#rewriting) {
      if (this.#now() - this.#rewrittenAt < REWRITE_INTERVAL_MS || this.#refused.size > 0) return;
      this.#rewriting = [...this.#applied.keys()];
    }
    const { options, committer } = round;
    const ports = this.#written(round);
    const pieces: Piece[] = [];
    while (pieces.length < this.#client.chainsPerRestore) {
      const id = this.#rewriting.pop();
      if (id === undefined) break;
      for (const { name, rules } of this.#compile(ports.get(id), options).chains)
        pieces.push(piece(id, { writes: [{ name, rules }] }));
    }
    if (pieces.length > 0) return committer.commit({ table: 'nat', pieces });
    this.#rewriting = undefined;
    this.#rewrittenAt = this.#now();
    await this.#rewrite(ports, options, committer, SHARED);
  }

  /** `isSettled`: all that was written is in the kernel, so what is missing there is another program's doing. */
  async #rewriteAll({ plan, options, report, committer }: Round, isSettled: boolean): Promise<void> {
    this.#isRewriteRequested = false;
    this.#drift = undefined;
    this.#rewriting = undefined;
    report.refused.clear();
    const repaired = await this.#rewrite(plan.servicePorts, options, committer);
    if (isSettled) for (const name of repaired) report.repaired.add(name);
    this.#rewrittenAt = this.#now();
  }

  /**
   * Writes chains of these service ports and those that lead to them; without a scope all, finding out what the kernel refuses.
   * Returns the names of chains that were not as we had left them.
   */
  async #rewrite(
    servicePorts: ServicePortPlans,
    options: CompileOptions,
    committer: Committer,
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
    const isRefused = (id: ServicePortId): boolean => committer.refused.has(id);
    const wanted = { layout, options, fragments, names, scope, isRefused, chainsPerRestore };
    const rewrite = new Rewrite(wanted);
    const repaired = new Set<string>();
    const note = (step: Step): void => {
      if (scope instanceof Drift) nameChains(repaired, step);
    };
    for (const step of rewrite.foundation()) {
      nameChains(repaired, step);
      await committer.commit(step);
    }
    const write = (step: Step): Promise<void> => {
      note(step);
      return scope ? committer.commit(step) : committer.commitAccepted(step);
    };
    await forEachSliced(rewrite.services(), (step) => step && write(step), timeSlice);
    for (const step of rewrite.entries()) {
      note(step);
      await committer.commitAccepted(step);
    }
    const foreignRules = await ensureForeignRules(this.#client, wanted);
    if (foreignRules.length > 0) committer.countRules(foreignRules.length);
    for (const { table, chain } of foreignRules) repaired.add(`chain ${table} ${chain}`);
    this.#owned = owned;
    // A refused service keeps what it had, so chains that look unused may still be its own.
    if (committer.refused.size > 0 || (scope && this.#refused.size > 0)) return repaired;
    for (const step of rewrite.garbage()) await committer.tryCommit(step);
    return repaired;
  }

  /** What the kernel has once these changes are written. */
  #written(round: Round): ServicePortPlans {
    const ports = new Map(this.#applied);
    update(ports, round);
    return ports;
  }

  async #readNames(): Promise<ChainNames> {
    const names = new Map<string, ReadonlySet<string>>();
    for (const table of TABLES) names.set(table, await this.#client.chainNames(table));
    return names;
  }

  #compile(port: ServicePortPlan | undefined, options: CompileOptions): Fragment {
    return port ? this.#layout.servicePort(port, options) : EMPTY_FRAGMENT;
  }
}

function update(ports: Map<ServicePortId, ServicePortPlan>, { plan, ids }: Round): void {
  for (const id of ids) {
    const port = plan.servicePorts.get(id);
    if (port) ports.set(id, port);
    else ports.delete(id);
  }
}
