/** The nftables backend of one family, joined to the real kernel. */
import type { SyncAttempt, SyncReport } from '../iptables/reconcile.ts';
import { NftBackend, type NftReport } from './reconcile.ts';
import type { NftSettings } from './rules/ruleset.ts';
import { Backstop, type BackstopClient, type BackstopFailure } from './rules/backstop.ts';
import { type Ruleset, setsByName } from './rules/rule.ts';
import type { NftClient } from './rules/transaction.ts';
import type { Cidr, Family, Ip } from '../../model/ip.ts';
import type { ServicePortId } from '../../model/serviceTracker.ts';
import { answersNodePorts } from '../../plan/decide.ts';
import type { Plan } from '../../plan/types.ts';
import { TimeSlice } from '../../time/timeSlice.ts';
import { systemClock } from '../../time/systemClock.ts';
import { elementsOf } from './sets.ts';
import type { TableNews } from './watch.ts';

export interface NftProxierOptions {
  readonly client: NftClient;
  readonly backstop?: BackstopClient;
  readonly onBackstopFailure?: (failure: BackstopFailure) => void;
  /** Another sync is worth it, so many milliseconds from now. */
  readonly again?: (milliseconds: number) => void;
  readonly masqueradeBit: number;
  readonly counters: boolean;
  /** The node's own addresses in this family, without loopback. */
  readonly nodeIps: () => readonly Ip[];
  /** Where cluster IPs come from, as far as that is known. */
  readonly serviceCidrs: () => readonly Cidr[];
}

const FIRST_RETRY_MS = 1000;
const LAST_RETRY_MS = 60_000;

export class NftProxier {
  readonly #options: NftProxierOptions;
  readonly #backend: NftBackend;
  readonly #backstop: Backstop | undefined;
  #retryMs = FIRST_RETRY_MS;
  /** Something is left to be removed; other syncs do not look at it. */
  #isUnclean = false;

  constructor(options: NftProxierOptions) {
    this.#options = options;
    const now = (): number => systemClock.now();
    const timeSlice = new TimeSlice(systemClock);
    this.#backend = new NftBackend({ client: options.client, now, timeSlice });
    this.#backstop = options.backstop && new Backstop({ client: options.backstop, now, timeSlice });
  }

  async sync(plan: Plan, dirty: Iterable<ServicePortId>): Promise<SyncReport> {
    const { masqueradeBit, counters, nodeIps, serviceCidrs, onBackstopFailure, again } = this.#options;
    const own = [...nodeIps()].sort();
    const settings = {
      nodeIps: own,
      masqueradeMark: (1 << masqueradeBit) >>> 0,
      counters,
      nodePortIps: own.filter((ip) => answersNodePorts(plan.view.nodePorts, ip)),
      serviceCidrs: [...serviceCidrs()].sort(),
    };
    const changed = [...dirty];
    const report = await this.#write(plan, changed, settings);
    const { refused } = report;
    const all = report.kind === 'full' ? undefined : changed;
    const failure = await this.#backstop?.sync(plan, { changed: all, refused }, settings);
    if (failure) {
      onBackstopFailure?.(failure);
      again?.(failure.retryMs);
    }
    if (report.retireInMs !== undefined) again?.(report.retireInMs);
    if (!report.isClean) {
      this.#isUnclean = true;
      again?.(this.#retryMs);
    } else if (!this.#isUnclean) this.#retryMs = FIRST_RETRY_MS;
    return toReport(report, this.#backend);
  }

  async #write(plan: Plan, changed: readonly ServicePortId[], settings: NftSettings): Promise<NftReport> {
    try {
      return await this.#backend.sync(plan, changed, settings);
    } catch (error) {
      await this.#backstop?.release(plan, changed);
      throw error;
    }
  }

  /** Before the sync that was asked for: what could not be removed is tried once more. */
  prepareRetry(): void {
    if (!this.#isUnclean) return;
    this.#isUnclean = false; // until that sync says otherwise
    this.#retryMs = Math.min(LAST_RETRY_MS, this.#retryMs * 2);
    this.#backend.noteStructure([]);
  }

  /** The socket was replaced by another, and with it went what it owned. */
  noteSocketLost(): void {
    this.#backstop?.doubt();
  }

  /** The table as it was last written. */
  get ruleset(): Ruleset {
    return this.#backend.ruleset;
  }

  /** What somebody else did, to be mended by the next sync. */
  noteForeign({ elements: news, isStructural, sets: unknown }: TableNews, family: Family): void {
    const sets = setsByName(this.ruleset);
    const toRead = new Set(unknown);
    for (const { set: name, elements, isThere } of news) {
      const set = sets.get(name);
      if (!set || toRead.has(name)) continue;
      const told = elementsOf(set, elements, family);
      // Of an interval, either end is told by itself.
      if ((set.ranges && set.key.length === 1) || (isThere && told.strangers.length > 0)) toRead.add(name);
      else this.#backend.noteForeign(told.elements.map((element) => ({ element, isThere })));
    }
    if (isStructural || toRead.size > 0) this.#backend.noteStructure(toRead);
  }

  get attempt(): SyncAttempt {
    return this.#backend.attempt;
  }

  requestFull(): void {
    this.#backend.requestFull();
  }
}

/** In the words that all modes report in: a transaction is what a restore is elsewhere, an element what a rule is. */
function toReport(report: NftReport, { ruleset }: NftBackend): SyncReport {
  const rules = ruleset.chains.reduce((sum, chain) => sum + chain.rules.length, 0);
  return {
    kind: report.kind,
    restores: report.transactions,
    bytes: 0,
    chains: report.chains,
    rules: report.elements,
    written: { filter: 0, nat: report.elements, mangle: 0 },
    refusals: 0,
    owned: { filter: 0, nat: rules, mangle: 0 },
    refused: report.refused,
    isUnclean: !report.isClean,
  };
}
