/**
 * Keeps one family's table equal to the plan: commits what changed, and never reads the table. Where it is not known what the
 * table has, another is built beside it and takes its place.
 */
import { isJunctionError, JunctionError } from '../../errors.ts';
import { deepEqual } from '../../model/equal.ts';
import type { Cidr, Ip } from '../../model/ip.ts';
import type { ServicePortId } from '../../model/serviceTracker.ts';
import type { Plan } from '../../plan/types.ts';
import type { SideWork } from '../../proxy/openWork.ts';
import type { KernelWriter } from '../../proxy/proxier.ts';
import { ReportBuilder, RetryDelay, type SyncAttempt, type SyncReport } from '../../proxy/report.ts';
import type { Clock } from '../../time/clock.ts';
import { systemClock } from '../../time/systemClock.ts';
import { TimeSlice } from '../../time/timeSlice.ts';
import { wait } from '../../time/wait.ts';
import type { Dataplane } from '../dataplane.ts';
import type { Backstop } from './rules/backstop.ts';
import { Evictions } from './rules/eviction.ts';
import { BACKSTOP_TABLE } from './rules/names.ts';
import { Rebuild, type RebuildOptions } from './rules/rebuild.ts';
import type { FoundTable, NftTables, Ruleset } from './rules/table.ts';
import type { WrittenTable } from './rules/written.ts';
import { isSameForAll, type NftFacts, nftSettings, type TableOptions } from './rules/ruleset.ts';

export interface NftSyncOptions {
  readonly tables: NftTables;
  /** No other program can change our table while this process runs. */
  readonly isProtected: boolean;
  readonly backstop?: Backstop | undefined;
  readonly masqueradeBit: number;
  readonly counters: boolean;
  /** The node's own addresses in this family, without loopback. */
  readonly nodeIps: () => readonly Ip[];
  readonly clock?: Clock;
  /** Asks for another sync. */
  readonly request?: (cause: string) => void;
  /** Other programs change the table again and again: it is rebuilt after this time. */
  readonly onBackoff?: (delayMs: number) => void;
  /** Before a table that was in force is deleted. */
  readonly onReplaced?: (table: string, ruleset: Ruleset) => Promise<void>;
}

/** In a report: something that nothing looks up any more could not be deleted. */
const CLEANUP_FAILURES = 'cleanup.failures';
/** When to look again whether affinity entries are copied or evicted. */
const AFFINITY_MS = 1000;
/** A change by others that comes so long after a rebuild is no answer to it: it is repaired at once. */
const ANSWER_MS = 10_000;
const TRIES = 3;

export class NftSync implements KernelWriter, Dataplane {
  readonly #options: NftSyncOptions;
  readonly #now: () => number;
  readonly #timeSlice = new TimeSlice(systemClock);
  readonly #evictions: Evictions;
  /** The one in force; unset until the first sync. */
  #table: WrittenTable | undefined;
  /** It is not known what the table has: nothing can be written into it. */
  #isOutdated = false;
  /** The table is to be built again beside syncs. */
  #isRebuildWanted = false;
  #background: Rebuild | undefined;
  /** What follows a swap, beside syncs. */
  #finishing: Promise<unknown> | undefined;
  #refused: ReadonlyMap<ServicePortId, Error> = new Map();
  readonly #retries = { refused: new RetryDelay(), cleanup: new RetryDelay(), foreign: new RetryDelay() };
  /** For the changes of others. */
  #rebuiltAt = Number.NEGATIVE_INFINITY;
  #isForeign = false;
  #serviceCidrs: readonly Cidr[] = [];
  #attempt: SyncAttempt = 'full';
  /** Since the last report. */
  readonly #commits = { count: 0, chains: new Set<string>() };

  constructor(options: NftSyncOptions) {
    this.#options = options;
    const { clock = systemClock } = options;
    this.#now = () => clock.now();
    this.#evictions = new Evictions({
      timeSlice: this.#timeSlice,
      wait: (milliseconds) => wait(clock, milliseconds),
    });
  }

  /** Writes the difference. `dirty`: service ports that may differ from what was last written. */
  async sync(plan: Plan, dirty: Iterable<ServicePortId>): Promise<SyncReport> {
    const ids = [...dirty];
    const report = new ReportBuilder();
    const wasOutdated = this.#isOutdated;
    try {
      await this.#write(plan, ids, report);
    } catch (error) {
      if (this.#isOutdated && !wasOutdated)
        this.#options.request?.('the outcome of a transaction is not known');
      throw await this.#named(error);
    }
    await this.#evict(plan, report);
    for (const [id, error] of this.#refused) report.refused.set(id, error);
    const all = this.#attempt === 'full' ? undefined : ids;
    if (this.#table) await this.#options.backstop?.sync(this.#table.ports, all, this.#optionsFor(plan));
    this.#end(report);
    return { ...report.end(this.#attempt), ...(this.#isForeign && { isRepairing: true }) };
  }

  apply(plan: Plan, ids: readonly ServicePortId[]): Promise<SyncReport> {
    return this.sync(plan, ids);
  }

  /** Builds the table again, and returns when nothing of the one before is left. */
  async rewrite(plan: Plan): Promise<SyncReport> {
    this.#isOutdated = true;
    const report = await this.sync(plan, []);
    await this.#finishing;
    await this.#evict(plan, new ReportBuilder());
    return report;
  }

  async #write(plan: Plan, ids: readonly ServicePortId[], report: ReportBuilder): Promise<void> {
    const options = this.#optionsFor(plan);
    const table = this.#table;
    if (!table || this.#isOutdated || !isSameForAll(table.options, options))
      return this.#rebuild(plan, options, report);
    this.#attempt = 'partial';
    const before = table.objects;
    const again = this.#retries.refused.isDue(this.#now()) ? [...this.#refused.keys()] : [];
    const all = [...new Set([...ids, ...again])];
    this.#evictions.note(
      all.flatMap((id) => table.ports.get(id) ?? []),
      plan,
    );
    try {
      this.#noteRefused(all, await table.change(all, plan.servicePorts, options));
      await table.retire();
    } catch (error) {
      this.#isOutdated = true;
      // Where the outcome of a commit is not known, the next sync builds the table: the kernel may not answer at all now.
      if (!isJunctionError(error, 'NFTABLES_CHANGED')) throw error;
      report.count('partial.failures');
      return this.#rebuild(plan, options, report);
    }
    report.objects += table.objects - before;
    await this.#goOn(table, plan, all, report);
  }

  #noteRefused(ids: readonly ServicePortId[], refused: ReadonlyMap<ServicePortId, Error>): void {
    const all = new Map(this.#refused);
    for (const id of ids) all.delete(id);
    for (const [id, error] of refused) all.set(id, error);
    this.#refused = all;
    if (refused.size > 0) this.#retries.refused.failed(this.#now());
    else if (all.size === 0) this.#retries.refused.succeeded();
  }

  /** Now, whatever waits for it: the table in force cannot be written. */
  async #rebuild(plan: Plan, options: TableOptions, report: ReportBuilder): Promise<void> {
    this.#attempt = 'full';
    await this.#background?.stop();
    this.#background = undefined;
    for (let tries = 1; ; tries++) {
      try {
        const rebuild = new Rebuild(this.#rebuildOptions, {
          plan,
          options,
          ports: plan.servicePorts,
          fallback: this.#table?.ports ?? new Map(),
          after: this.#finishing,
        });
        await rebuild.done;
        return await this.#swap(rebuild, plan, rebuild.refused, report);
      } catch (error) {
        // Another program deleted the table while it was written.
        if (!isJunctionError(error, 'NFTABLES_CHANGED') || tries === TRIES) throw error;
      }
    }
  }

  async #swap(
    rebuild: Rebuild,
    plan: Plan,
    refused: ReadonlyMap<ServicePortId, Error>,
    report: ReportBuilder,
  ): Promise<void> {
    const old = await rebuild.swap();
    const { table } = rebuild;
    const before = this.#table;
    report.objects += table.objects;
    this.#attempt = 'full';
    this.#table = table;
    this.#isOutdated = false;
    this.#isRebuildWanted = false;
    this.#isForeign = false;
    this.#refused = new Map();
    this.#noteRefused([], refused);
    this.#evictions.noteAll();
    const finishing = this.#finish(rebuild, old, plan, before).then(() => {
      if (this.#finishing === finishing) this.#finishing = undefined;
    });
    this.#finishing = finishing;
  }

  /** Entries of clients that came while the others were copied; then the old table is deleted. */
  async #finish(
    rebuild: Rebuild,
    old: readonly FoundTable[],
    plan: Plan,
    before: WrittenTable | undefined,
  ): Promise<void> {
    try {
      await rebuild.copyAffinity(old, plan);
      for (const { name } of old) {
        const { ruleset } = name === before?.name ? before : rebuild.table;
        await this.#options.onReplaced?.(name, ruleset);
      }
    } catch {
      // The kernel did not answer; the old table must not stay for that.
    }
    await this.#sweep();
  }

  /** Deletes tables of ours that are not in force: what was replaced, and what a process left that was killed. */
  async #sweep(): Promise<void> {
    const { tables } = this.#options;
    let isClean = true;
    try {
      for (const { name } of await tables.list()) {
        if (name === this.#table?.name || name === BACKSTOP_TABLE) continue;
        const outcome = await tables.table(name).commit([{ kind: 'deleteTable' }]);
        isClean &&= outcome.state === 'done' || outcome.name === 'ENOENT';
      }
    } catch {
      isClean = false;
    }
    if (isClean) this.#retries.cleanup.succeeded();
    else this.#retries.cleanup.failed(this.#now());
  }

  /** What goes on beside syncs: a rebuild that was asked for, and what could not be deleted. */
  async #goOn(
    table: WrittenTable,
    plan: Plan,
    ids: readonly ServicePortId[],
    report: ReportBuilder,
  ): Promise<void> {
    const { cleanup } = this.#retries;
    if (cleanup.isWaiting && cleanup.isDue(this.#now()) && !this.#finishing && !this.#background)
      await this.#sweep();
    const background = this.#background;
    background?.note(ids);
    if (!background && this.#isRebuildWanted) this.#beginInBackground(table, plan);
    if (!background?.hasEnded) return;
    this.#background = undefined;
    const isOutdated = (): boolean => !deepEqual(background.table.options, table.options);
    if (background.isSpoiled || isOutdated()) return this.#beginInBackground(table, plan);
    await this.#finishing;
    await background.catchUp(0);
    await this.#swap(background, plan, new Map([...this.#refused, ...background.refused]), report);
  }

  #beginInBackground(table: WrittenTable, plan: Plan): void {
    const { foreign } = this.#retries;
    const now = this.#now();
    if (this.#isForeign && !foreign.isDue(now)) return;
    if (this.#isForeign) {
      foreign.failed(now);
      this.#rebuiltAt = now;
    }
    const { ports, options } = table;
    const rebuild = new Rebuild(this.#rebuildOptions, {
      plan,
      options,
      ports,
      fallback: new Map(),
      after: this.#finishing,
    });
    this.#background = rebuild;
    void rebuild.done.then(() => this.#options.request?.('a rebuilt table is ready'));
  }

  get #rebuildOptions(): RebuildOptions {
    const { tables, isProtected } = this.#options;
    return {
      tables,
      isProtected,
      now: this.#now,
      timeSlice: this.#timeSlice,
      onCommit: (transaction) => {
        this.#commits.count++;
        for (const operation of transaction)
          if ('chain' in operation) this.#commits.chains.add(operation.chain);
      },
    };
  }

  /** What fails, or takes its time, is left for the next sync. */
  async #evict(plan: Plan, report: ReportBuilder): Promise<void> {
    const table = this.#table;
    if (!table) return;
    if (this.#finishing) return report.retryAfter(AFFINITY_MS);
    const outcome = await this.#evictions.evict({ plan, nodeIps: table.options.nodeIps ?? [], table });
    if (outcome === 'later') report.retryAfter(AFFINITY_MS);
    if (outcome === 'failed') {
      report.count(CLEANUP_FAILURES);
      report.retryAfter(this.#retries.cleanup.failed(this.#now()));
    }
  }

  #end(report: ReportBuilder): void {
    const { count, chains } = this.#commits;
    report.commits += count;
    report.counts['chains'] = chains.size;
    this.#commits.count = 0;
    chains.clear();
    const now = this.#now();
    const { refused, cleanup, foreign } = this.#retries;
    if (cleanup.isWaiting) report.count(CLEANUP_FAILURES);
    const delays = [
      this.#table?.retireAfterMs,
      this.#refused.size > 0 ? refused.remainingMs(now) : undefined,
      cleanup.remainingMs(now),
      this.#isRebuildWanted && this.#isForeign && !this.#background ? foreign.remainingMs(now) : undefined,
      this.#options.backstop?.retryAfterMs,
    ];
    for (const delay of delays) if (delay !== undefined) report.retryAfter(delay);
  }

  /** Where our own name is another process's, says whose. */
  async #named(error: unknown): Promise<unknown> {
    if (!isJunctionError(error, 'NFTABLES_OWNED')) return error;
    const found = await this.#options.tables.list().catch(() => []);
    const owners = [...new Set(found.flatMap(({ owner }) => owner() ?? []))].join(', ');
    const whose = owners === '' ? 'another process' : owners;
    const text = `nftables: a table of our name belongs to ${whose}, which alone can change it (EPERM)`;
    return new JunctionError('NFTABLES_OWNED', `${text}; trying again`);
  }

  get attempt(): SyncAttempt {
    return this.#attempt;
  }

  get sideWork(): readonly SideWork[] {
    const evicting = this.#evictions.running;
    return [
      ...(evicting
        ? [{ what: 'clients of endpoints that are gone are being forgotten', done: evicting }]
        : []),
      ...(this.#finishing ? [{ what: 'the table before is being deleted', done: this.#finishing }] : []),
    ];
  }

  /** As they are now. */
  get facts(): NftFacts {
    const { masqueradeBit, counters, nodeIps } = this.#options;
    return { masqueradeBit, counters, nodeIps: nodeIps(), serviceCidrs: this.#serviceCidrs };
  }

  /** The table in force, once nothing of the one before is left; unset before the first sync. */
  async settled(): Promise<{ readonly name: string; readonly ruleset: Ruleset } | undefined> {
    while (this.#finishing) await this.#finishing;
    return this.#table;
  }

  #optionsFor({ family, view }: Plan): TableOptions {
    return { ...nftSettings(this.facts, view), family, view };
  }

  /** Where cluster IPs come from, as far as that is known. */
  setServiceCidrs(cidrs: readonly Cidr[]): void {
    this.#serviceCidrs = [...cidrs].sort();
  }

  /** The kernel is never read, so nothing can differ: what it refused is tried again. */
  requestFull(): void {
    this.#retries.refused.succeeded();
  }

  /** Another program changed these tables, or may have: unset means any. Returns whether a sync should follow. */
  noteForeign(names?: ReadonlySet<string>): boolean {
    this.#background?.spoil(names);
    if (names && !names.has(this.#table?.name ?? '')) return false;
    const now = this.#now();
    const { foreign } = this.#retries;
    if (now - this.#rebuiltAt > ANSWER_MS) foreign.succeeded();
    if (!this.#isForeign && !foreign.isDue(now)) this.#options.onBackoff?.(foreign.remainingMs(now) ?? 0);
    this.#isForeign = true;
    this.#isRebuildWanted = true;
    return true;
  }
}
