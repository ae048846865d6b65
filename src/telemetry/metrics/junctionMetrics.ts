import type { Family } from '../../model/ip.ts';
import { FINE_BUCKETS, Counter, Gauge, Histogram, type Registry, type Collector } from './instruments.ts';
import { faultCounts } from '../../faults.ts';

/** What Junction tells beyond kube-proxy: fine enough to see syncs of a millisecond. */

export interface PlanSize {
  readonly servicePorts: number;
  readonly endpoints: number;
}

const MOST_PROGRAMS = 20;

export class JunctionMetrics {
  readonly #change: Histogram<'ip_family' | 'stage'>;
  readonly #servicePorts: Gauge<'ip_family'>;
  readonly #endpoints: Gauge<'ip_family'>;
  readonly #refused: Gauge<'ip_family'>;
  readonly #syncs: Counter<'ip_family' | 'kind'>;
  readonly #foreignChanges: Counter<'ip_family' | 'program'>;
  readonly #previousCrashes: Counter<'cause'>;
  readonly #programs = new Set<string>();
  readonly #resourceUp: Gauge<'resource'>;
  readonly #resourceFailures: Counter<'resource' | 'reason'>;

  constructor(registry: Registry) {
    const labels = ['ip_family'] as const;
    this.#change = registry.add(
      new Histogram({
        name: 'junction_change_duration_seconds',
        help: 'Time of the change that waited longest for a sync: from its event to the plan (plan), from the plan to the kernel (write), and both (total)',
        labels: ['ip_family', 'stage'],
        buckets: FINE_BUCKETS,
      }),
    );
    this.#servicePorts = registry.add(
      new Gauge({ name: 'junction_service_ports', help: 'Service ports in the plan', labels }),
    );
    this.#endpoints = registry.add(
      new Gauge({ name: 'junction_endpoints', help: 'Endpoints of all service ports in the plan', labels }),
    );
    this.#refused = registry.add(
      new Gauge({
        name: 'junction_refused_service_ports',
        help: 'Service ports whose rules the kernel refuses; what they had before stays in force',
        labels,
      }),
    );
    this.#syncs = registry.add(
      new Counter({
        name: 'junction_syncs_total',
        help: 'Syncs by what they did: full (read the kernel back), incremental, nothing, failed',
        labels: ['ip_family', 'kind'],
      }),
    );
    this.#resourceUp = registry.add(
      new Gauge({
        name: 'junction_api_resource_up',
        help: 'Whether a resource of the API server has been listed and is being watched; 0 while neither succeeds',
        labels: ['resource'],
      }),
    );
    this.#resourceFailures = registry.add(
      new Counter({
        name: 'junction_api_failures_total',
        help: 'Lists and watches that failed, by resource and reason',
        labels: ['resource', 'reason'],
      }),
    );
    this.#foreignChanges = registry.add(
      new Counter({
        name: 'junction_foreign_changes_total',
        help: 'Changes that other programs made to what we wrote into the kernel, each repaired; by the name of the program',
        labels: ['ip_family', 'program'],
      }),
    );
    this.#previousCrashes = registry.add(
      new Counter({
        name: 'junction_previous_crashes_total',
        help: 'Runs before this one that crashed: by an uncaught error, or killed without a word; since --state-dir was empty',
        labels: ['cause'],
      }),
    );
  }

  /** By cause. */
  previousCrashes(crashes: Readonly<Record<string, number>>): void {
    for (const [cause, count] of Object.entries(crashes)) this.#previousCrashes.add({ cause }, count);
  }

  resourceUp(resource: string, isUp: boolean): void {
    this.#resourceUp.set({ resource }, isUp ? 1 : 0);
  }

  resourceFailed(resource: string, reason: string): void {
    this.#resourceFailures.add({ resource, reason });
  }

  /** Programs have any name they like; only the first few get a series. */
  foreignChange(family: Family, name: string): void {
    const isShown = this.#programs.has(name) || this.#programs.size < MOST_PROGRAMS;
    if (isShown) this.#programs.add(name);
    this.#foreignChanges.add({ ip_family: family, program: isShown ? name : 'other' });
  }

  changeWritten(family: Family, { planSeconds, writeSeconds, totalSeconds }: ChangeTimes): void {
    const stages = { plan: planSeconds, write: writeSeconds, total: totalSeconds };
    for (const [stage, seconds] of Object.entries(stages)) {
      this.#change.observe({ ip_family: family, stage }, seconds);
    }
  }

  planSize(family: Family, { servicePorts, endpoints }: PlanSize): void {
    this.#servicePorts.set({ ip_family: family }, servicePorts);
    this.#endpoints.set({ ip_family: family }, endpoints);
  }

  refused(family: Family, count: number): void {
    this.#refused.set({ ip_family: family }, count);
  }

  synced(family: Family, kind: 'full' | 'incremental' | 'nothing' | 'failed'): void {
    this.#syncs.add({ ip_family: family, kind });
  }
}

/**
 * How long changes take from their arrival to the kernel.
 *
 * One sync takes all changes that wait, and what is measured is the one that waited longest: nobody waited longer
 * than that.
 */
export interface ChangeTimes {
  /** From the event to the plan. */
  readonly planSeconds: number;
  /** From the plan to the kernel's acknowledgement. */
  readonly writeSeconds: number;
  readonly totalSeconds: number;
}

/** Times are those of a steady clock, in milliseconds. */
export class ChangeTimer {
  #receivedAt: number | undefined;
  #writing: { readonly receivedAt: number; readonly plannedAt: number } | undefined;

  received(now: number): void {
    this.#receivedAt ??= now;
  }

  /** All changes so far are in the plan. After a failed write they are measured from when they came. */
  planned(now: number): void {
    const receivedAt = this.#writing?.receivedAt ?? this.#receivedAt;
    this.#receivedAt = undefined;
    this.#writing = receivedAt === undefined ? undefined : { receivedAt, plannedAt: now };
  }

  /** The plan is in the kernel; `undefined`: no change was waiting for that. */
  written(now: number): ChangeTimes | undefined {
    const writing = this.#writing;
    this.#writing = undefined;
    return (
      writing && {
        planSeconds: (writing.plannedAt - writing.receivedAt) / 1000,
        writeSeconds: (now - writing.plannedAt) / 1000,
        totalSeconds: (now - writing.receivedAt) / 1000,
      }
    );
  }
}

/** Faults that the process survived. */

export const faultMetrics: Collector = {
  collect: () => [
    {
      name: 'junction_faults_total',
      help: 'Faults that were survived: programs that could not be started or hung, netlink messages that were unreadable, lost or forged',
      type: 'counter',
      samples: [...faultCounts()].map(([fault, value]) => ({
        suffix: '',
        labels: [['fault', fault]],
        value,
      })),
    },
  ],
};
