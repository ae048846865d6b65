/**
 * Keeps one part of the kernel equal to the plan: the tables of iptables, the virtual servers, a table of nftables, its
 * backstop. Each supplies how to write changes and how to read the kernel back; what was written, what the kernel
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

export interface Reconcilable<Options, P = Plan> {
  /** Compiles these service ports before and after, and commits the difference. False: the kernel has to be read. */
  apply(changes: Changes<Options, P>): Promise<boolean>;
  /** Reads the kernel and commits what differs. What is refused goes into the report. */
  resync(resync: Resync<Options, P>): Promise<void>;
  /** Whether changes suffice after options changed; unset: they do not. */
  isCompatible?(before: Options, now: Options): boolean;
  /** While the kernel refuses some service ports, changes of others suffice. */
  readonly appliesBesideRefused?: boolean;
}

export class Reconciler<Options, P extends WithServicePorts = Plan> {
  readonly #part: Reconcilable<Options, P>;
  readonly #applied = new Map<ServicePortId, ServicePortPlan>();
  #options: Options | undefined;
  #needsFull = true;
  /** Apart from `#needsFull`, so that a request during a sync is not lost at its end. */
  #fullRequested = false;
  #refused: ReadonlyMap<ServicePortId, Error> = new Map();
  #attempt: SyncAttempt = 'full';

  constructor(part: Reconcilable<Options, P>) {
    this.#part = part;
  }

  /** Of the last sync, also if it failed. */
  get attempt(): SyncAttempt {
    return this.#attempt;
  }

  get applied(): ServicePortPlans {
    return this.#applied;
  }

  /** Those of the last sync that succeeded. */
  get options(): Options | undefined {
    return this.#options;
  }

  /** The next sync reads the kernel and repairs what differs. */
  requestFull(): void {
    this.#fullRequested = true;
  }

  /** `dirty`: service ports that may differ from what was last written. */
  async sync(plan: P, dirty: Iterable<ServicePortId>, options: Options): Promise<SyncReport> {
    const ids = [...dirty];
    const report = new ReportBuilder();
    const changes = { plan, options, ids, applied: this.#applied, report };
    const isRequested = this.#fullRequested;
    const wasSettled = !this.#needsFull && this.#refused.size === 0;
    const canApply = !this.#needsFull && this.#mayGoOn(ids) && this.#isCompatible(options);
    this.#attempt = canApply ? 'partial' : 'full';
    this.#needsFull = true; // until all of it is in the kernel
    const isApplied = canApply && (await this.#part.apply(changes));
    if (isApplied) this.#note(plan, ids, options);
    // Our own changes are written, so whatever a requested look finds is another program's.
    if (!isApplied || isRequested) {
      if (canApply && !isApplied) report.count('partial.failures');
      this.#attempt = 'full';
      this.#fullRequested = false;
      report.refused.clear();
      await this.#part.resync({
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
    return (
      this.#part.appliesBesideRefused === true &&
      !this.#fullRequested &&
      !ids.some((id) => this.#refused.has(id))
    );
  }

  #isCompatible(options: Options): boolean {
    const before = this.#options;
    if (before === undefined) return false;
    return this.#part.isCompatible?.(before, options) ?? deepEqual(options, before);
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
