/** One address family of the nftables mode: its table, and the backstop behind it. */
import { NftRules } from './reconcile.ts';
import { CLEANUP_FAILURES } from './rules/resync.ts';
import { Backstop, type BackstopClient, type BackstopFailure } from './rules/backstop.ts';
import { byName, isOfIntervals, type NftClient } from './rules/table.ts';
import type { Cidr, Family, Ip } from '../../model/ip.ts';
import type { ServicePortId } from '../../model/serviceTracker.ts';
import type { Plan } from '../../plan/types.ts';
import type { SideWork } from '../../proxy/openWork.ts';
import { RetryDelay, type SyncAttempt, type SyncReport } from '../../proxy/report.ts';
import { TimeSlice } from '../../time/timeSlice.ts';
import type { Clock } from '../../time/clock.ts';
import { systemClock } from '../../time/systemClock.ts';
import { wait } from '../../time/wait.ts';
import { elementsOf } from './sets.ts';
import { type NftFacts, nftSettings } from './settings.ts';
import type { TableChanges } from './watch.ts';

interface NftProxierOptions {
  readonly client: NftClient;
  readonly backstop?: BackstopClient;
  readonly onBackstopFailure?: (failure: BackstopFailure) => void;
  readonly masqueradeBit: number;
  readonly counters: boolean;
  /** The node's own addresses in this family, without loopback. */
  readonly nodeIps: () => readonly Ip[];
  readonly clock?: Clock;
}

export class NftProxier {
  readonly #options: NftProxierOptions;
  readonly table: NftRules;
  readonly #backstop: Backstop | undefined;
  readonly #now: () => number;
  /** Of what could not be deleted; other syncs do not look at it. */
  readonly #cleanup = new RetryDelay();
  #serviceCidrs: readonly Cidr[] = [];

  constructor(options: NftProxierOptions) {
    this.#options = options;
    const { client, backstop, clock = systemClock } = options;
    const now = (): number => clock.now();
    const timeSlice = new TimeSlice(systemClock);
    this.#now = now;
    this.table = new NftRules({
      client,
      now,
      timeSlice,
      wait: (milliseconds) => wait(clock, milliseconds),
    });
    this.#backstop = backstop && new Backstop({ client: backstop, now, timeSlice });
  }

  async sync(plan: Plan, dirty: Iterable<ServicePortId>): Promise<SyncReport> {
    const changed = [...dirty];
    const settings = nftSettings(this.facts, plan.view);
    const isCleanupDue = this.#cleanup.isDue(this.#now());
    if (isCleanupDue && this.#cleanup.isWaiting) this.table.noteStructure([]);
    const report = await this.table.sync(plan, changed, settings).catch(async (error: unknown) => {
      await this.#backstop?.release(plan, changed);
      throw error;
    });
    if (report.counts[CLEANUP_FAILURES]) this.#cleanup.failed(this.#now());
    else if (isCleanupDue) this.#cleanup.succeeded();
    const all = report.kind === 'full' ? undefined : changed;
    const failure = await this.#backstop?.sync(plan, { changed: all, refused: report.refused }, settings);
    if (failure) this.#options.onBackstopFailure?.(failure);
    const delays = [
      report.retryAfterMs,
      this.#cleanup.remainingMs(this.#now()),
      this.#backstop?.retryAfterMs,
    ].filter((delay) => delay !== undefined);
    return { ...report, retryAfterMs: delays.length > 0 ? Math.min(...delays) : undefined };
  }

  get sideWork(): readonly SideWork[] {
    const { evicting } = this.table;
    return evicting
      ? [{ what: 'clients of endpoints that are gone are being forgotten', done: evicting }]
      : [];
  }

  /** As they are now. */
  get facts(): NftFacts {
    const { masqueradeBit, counters, nodeIps } = this.#options;
    return { masqueradeBit, counters, nodeIps: nodeIps(), serviceCidrs: this.#serviceCidrs };
  }

  /** Where cluster IPs come from, as far as that is known. */
  setServiceCidrs(cidrs: readonly Cidr[]): void {
    this.#serviceCidrs = [...cidrs].sort();
  }

  /** The socket was replaced by another: what it owned, the backstop, is deleted. The next sync looks. */
  noteSocketLost(): void {
    this.#backstop?.requestFull();
  }

  /** What another program changed, to be repaired by the next sync. */
  noteForeign({ elements: changes, isStructural, sets: replaced }: TableChanges, family: Family): void {
    const sets = byName(this.table.ruleset.sets);
    const toRead = new Set(replaced);
    for (const { set: name, elements: given, isThere } of changes) {
      const set = sets.get(name);
      if (!set || toRead.has(name)) continue;
      const { elements, unknown } = elementsOf(set, given, family);
      // Of an interval, each end is notified by itself.
      if (isOfIntervals(set) || (isThere && unknown.length > 0)) toRead.add(name);
      else this.table.noteForeign(elements.map((element) => ({ element, isThere })));
    }
    if (isStructural || toRead.size > 0) this.table.noteStructure(toRead);
  }

  get attempt(): SyncAttempt {
    return this.table.attempt;
  }

  requestFull(): void {
    this.table.requestFull();
  }

  /** The next sync makes sure that the backstop is there. */
  requestBackstop(): void {
    this.#backstop?.requestFull();
  }
}
