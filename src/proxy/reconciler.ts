/**
 * Keeps one part of the kernel equal to the plan: the tables of iptables, the virtual servers, a table of nftables, its
 * backstop. Each extends this class and supplies how to write changes and how to read the kernel back; what was written, what the kernel
 * refused and when it has to be read is the same for all.
 *
 * An ordinary sync writes the service ports that changed. The kernel is read at the start, after a failure or a refusal,
 * when options changed, and on request. Where a process before this one recorded what it wrote, the start is an
 * ordinary sync too: it writes what changed since then.
 */
import { deepEqual } from '../model/equal.ts';
import type { ServicePortId } from '../model/serviceTracker.ts';
import type { Plan, ServicePortPlan } from '../plan/types.ts';
import { ReportBuilder, type SyncAttempt, type SyncReport } from './report.ts';

export type ServicePortPlans = ReadonlyMap<ServicePortId, ServicePortPlan>;

/** As much of a plan as the reconciler itself reads. */
export type WithServicePorts = Pick<Plan, 'servicePorts'>;

export interface Changes<Options, P = Plan> {
  readonly plan: P;
  readonly options: Options;
  /** Service ports to write as the plan has them. */
  readonly ids: readonly ServicePortId[];
  /** All of them as they were last written. */
  readonly applied: ServicePortPlans;
  readonly report: ReportBuilder;
}

/** Of all that the plan has. */
export interface Resync<Options, P = Plan> extends Changes<Options, P> {
  /** Our own changes that may not be in the kernel: other programs changed what differs besides. Unset: anything may differ. */
  readonly unwritten: ReadonlySet<ServicePortId> | undefined;
  /** Everything that was last written is in the kernel, or was. */
  readonly isSettled: boolean;
  readonly isRequested: boolean;
}

/** What a process before this one wrote. */
export interface Restored {
  readonly applied: ServicePortPlans;
  /** Those that the plan has otherwise, or not at all, and those that it has and the kernel does not. */
  readonly differing: readonly ServicePortId[];
  /** Written without comments on endpoints, where a mode has such. */
  readonly withoutComments: ReadonlySet<ServicePortId>;
  /** What `recordState` was. */
  readonly state: unknown;
  /** Nobody can have changed anything since. */
  readonly isCurrent: boolean;
}

/** Keeps what was written, for the next process. */
export interface ApplyRecord {
  /** `undefined`: there is nothing that holds; the kernel has to be read. */
  restore(servicePorts: ServicePortPlans, options: unknown): Promise<Restored | undefined>;
  /** Before the kernel is changed; to be awaited. */
  begin(): Promise<void> | undefined;
  end(written: {
    readonly ids: Iterable<ServicePortId>;
    readonly applied: ServicePortPlans;
    readonly withoutComments: ReadonlySet<ServicePortId>;
    readonly options: unknown;
    readonly state: unknown;
    readonly isFull: boolean;
    readonly isWhole: boolean;
  }): void;
  /** It is not known what was changed. */
  failed(): void;
  /** Another program changed something that is not repaired yet. */
  doubt(): void;
}

const NONE: ReadonlySet<ServicePortId> = new Set();

export abstract class Reconciler<Options, P extends WithServicePorts = Plan> {
  /** While the kernel refuses some service ports, changes of others suffice. */
  protected readonly appliesBesideRefused: boolean = false;
  readonly #applied = new Map<ServicePortId, ServicePortPlan>();
  #options: Options | undefined;
  #needsFull = true;
  /** Apart from `#needsFull`, so that a request during a sync is not lost at its end. */
  #fullRequested = false;
  #refused: ReadonlyMap<ServicePortId, Error> = new Map();
  #attempt: SyncAttempt = 'full';
  readonly #record: ApplyRecord | undefined;
  #isStarted = false;

  constructor(record?: ApplyRecord) {
    this.#record = record;
  }

  /** Compiles these service ports before and after, and commits the difference. False: the kernel has to be read. */
  protected abstract apply(changes: Changes<Options, P>): Promise<boolean>;

  /** Reads the kernel and commits what differs. What is refused goes into the report. */
  protected abstract resync(resync: Resync<Options, P>): Promise<void>;

  /** Whether changes suffice after options changed. */
  protected isCompatible(before: Options, now: Options): boolean {
    return deepEqual(now, before);
  }

  /** What the mode derives from what it wrote: as it is now, to be recorded. */
  protected get recordState(): unknown {
    return undefined;
  }

  /** What the written rules depend on besides the plan, as far as all service ports have it in common. */
  protected recordOptions(options: Options): unknown {
    return options;
  }

  /** Service ports that were written without comments on endpoints. */
  protected get withoutComments(): ReadonlySet<ServicePortId> {
    return NONE;
  }

  /** The same from the record, with what was written. False: it is not enough, and the kernel has to be read. */
  protected restoreState(_restored: Restored, _options: Options): Promise<boolean> {
    return Promise.resolve(false);
  }

  /** Of the last sync, also if it failed. */
  get attempt(): SyncAttempt {
    return this.#attempt;
  }

  get applied(): ServicePortPlans {
    return this.#applied;
  }

  /** The kernel refuses some service ports, which have what they had before. */
  protected get isRefused(): boolean {
    return this.#refused.size > 0;
  }

  /** Those of the last sync that succeeded. */
  protected get options(): Options | undefined {
    return this.#options;
  }

  /** Between syncs: everything that was applied is in the kernel, as far as we know, and the next sync need not read it. */
  protected get isSettled(): boolean {
    return !this.#needsFull && !this.#fullRequested && this.#refused.size === 0;
  }

  /** The next sync reads the kernel and repairs what differs. */
  requestFull(): void {
    this.#fullRequested = true;
  }

  /** `dirty`: service ports that may differ from what was last written. */
  protected async reconcile(plan: P, dirty: Iterable<ServicePortId>, options: Options): Promise<SyncReport> {
    const record = this.#record;
    const ids = (await this.#restore(plan, options)) ?? [...dirty];
    await record?.begin();
    try {
      return await this.#reconcile(plan, ids, options);
    } catch (error) {
      record?.failed();
      throw error;
    }
  }

  /** At the first sync. Returns what differs from what a process before this one wrote; `undefined`: that is not known. */
  async #restore(plan: P, options: Options): Promise<readonly ServicePortId[] | undefined> {
    if (this.#isStarted) return undefined;
    this.#isStarted = true;
    const restored = await this.#record?.restore(plan.servicePorts, this.recordOptions(options));
    for (const [id, port] of restored?.applied ?? []) this.#applied.set(id, port);
    if (!restored || !(await this.restoreState(restored, options))) return undefined;
    this.#options = options;
    this.#needsFull = false;
    return restored.differing;
  }

  async #reconcile(plan: P, ids: readonly ServicePortId[], options: Options): Promise<SyncReport> {
    const report = new ReportBuilder();
    const changes = { plan, options, ids, applied: this.#applied, report };
    const isRequested = this.#fullRequested;
    const wasSettled = !this.#needsFull && this.#refused.size === 0;
    const before = this.#options;
    const isCompatible = before !== undefined && this.isCompatible(before, options);
    const canApply = !this.#needsFull && isCompatible && this.#mayGoOn(ids);
    this.#attempt = canApply ? 'partial' : 'full';
    this.#needsFull = true; // until all of it is in the kernel
    const isApplied = canApply && (await this.apply(changes));
    if (isApplied) this.#note(plan, ids, options);
    const changed = new Set(ids);
    // Our own changes are written, so whatever a requested look finds is another program's.
    if (!isApplied || isRequested) {
      if (canApply && !isApplied) report.count('partial.failures');
      this.#attempt = 'full';
      this.#fullRequested = false;
      report.refused.clear();
      await this.resync({
        ...changes,
        unwritten: canApply && wasSettled ? this.#unlike(plan) : undefined,
        isSettled: canApply ? isApplied : wasSettled,
        isRequested,
      });
      if (this.#record) for (const id of this.#unlike(plan)) changed.add(id);
      this.#applied.clear();
      this.#note(plan, plan.servicePorts.keys(), options);
      this.#refused = report.refused;
    } else {
      this.#refused = new Map([...this.#refused, ...report.refused]);
      for (const [id, error] of this.#refused) report.refused.set(id, error);
    }
    this.#needsFull = false;
    this.#noteWritten(changed, options);
    return report.end(this.#attempt);
  }

  #noteWritten(ids: ReadonlySet<ServicePortId>, options: Options): void {
    this.#record?.end({
      ids,
      applied: this.#applied,
      withoutComments: this.withoutComments,
      options: this.recordOptions(options),
      state: this.recordState,
      isFull: this.#attempt === 'full',
      isWhole: this.#refused.size === 0,
    });
  }

  #mayGoOn(ids: readonly ServicePortId[]): boolean {
    if (this.#refused.size === 0) return true;
    return this.appliesBesideRefused && !this.#fullRequested && !ids.some((id) => this.#refused.has(id));
  }

  #note({ servicePorts }: WithServicePorts, ids: Iterable<ServicePortId>, options: Options): void {
    this.#options = options;
    for (const id of ids) {
      const port = servicePorts.get(id);
      if (port) this.#applied.set(id, port);
      else this.#applied.delete(id);
    }
  }

  /** Service ports that were last written as something else than they are in the plan. */
  #unlike({ servicePorts }: WithServicePorts): ReadonlySet<ServicePortId> {
    const ids = new Set<ServicePortId>();
    for (const [id, port] of servicePorts) if (this.#applied.get(id) !== port) ids.add(id);
    for (const id of this.#applied.keys()) if (!servicePorts.has(id)) ids.add(id);
    return ids;
  }
}
