/**
 * Keeps one part of the kernel equal to the plan: the tables of iptables, the virtual servers, a table of nftables, its
 * backstop. Each extends this class and supplies how to write changes and how to read the kernel back; what was written, what the kernel
 * refused and when it has to be read is the same for all.
 *
 * An ordinary sync writes the service ports that changed. The kernel is read at the start, after a failure or a refusal,
 * when options changed, and on request.
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

  /** Compiles these service ports before and after, and commits the difference. False: the kernel has to be read. */
  protected abstract apply(changes: Changes<Options, P>): Promise<boolean>;

  /** Reads the kernel and commits what differs. What is refused goes into the report. */
  protected abstract resync(resync: Resync<Options, P>): Promise<void>;

  /** Whether changes suffice after options changed. */
  protected isCompatible(before: Options, now: Options): boolean {
    return deepEqual(now, before);
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
    const ids = [...dirty];
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
      this.#applied.clear();
      this.#note(plan, plan.servicePorts.keys(), options);
      this.#refused = report.refused;
    } else {
      this.#refused = new Map([...this.#refused, ...report.refused]);
      for (const [id, error] of this.#refused) report.refused.set(id, error);
    }
    this.#needsFull = false;
    return report.end(this.#attempt);
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
