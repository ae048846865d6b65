/** Metrics beyond kube-proxy's: fine enough to see syncs of a millisecond. */
import { faultCounts } from '../../faults.ts';
import type { Family } from '../../model/ip.ts';
import {
  type Collector,
  counter,
  doubling,
  gauge,
  histogram,
  type Instruments,
  register,
  type Registry,
} from './instruments.ts';

/** 0.1 ms to 13 s: most of Junction's syncs would all fall into the first of kube-proxy's buckets. */
const FINE_BUCKETS = doubling(0.0001, 18);
const FAMILY = ['ip_family'] as const;

const METRICS = {
  junction_mode_info: gauge('Always 1; the mode in force', ['mode']),
  junction_change_duration_seconds: histogram(
    'Time of the change that waited longest for a sync: from its event to the plan (plan), from the plan to the kernel (write), and both (total)',
    ['ip_family', 'stage'],
    FINE_BUCKETS,
  ),
  junction_service_ports: gauge('Service ports in the plan', FAMILY),
  junction_endpoints: gauge('Endpoints of all service ports in the plan', FAMILY),
  junction_refused_service_ports: gauge(
    'Service ports whose rules the kernel refuses; what they had before stays in force',
    FAMILY,
  ),
  junction_syncs_total: counter(
    'Syncs by what they did: full (read the kernel back), incremental, nothing, failed',
    ['ip_family', 'kind'],
  ),
  junction_api_resource_up: gauge(
    'Whether a resource of the API server has been listed and is being watched; 0 while neither succeeds',
    ['resource'],
  ),
  junction_api_failures_total: counter('Lists and watches that failed, by resource and reason', [
    'resource',
    'reason',
  ]),
  junction_foreign_changes_total: counter(
    'Changes that other programs made to what we wrote into the kernel, each repaired; by the name of the program',
    ['ip_family', 'program'],
  ),
};

const MOST_PROGRAMS = 20;

export class JunctionMetrics {
  readonly table: Instruments<typeof METRICS>;
  readonly #programs = new Set<string>();

  constructor(registry: Registry) {
    this.table = register(registry, METRICS);
  }

  resourceUp(resource: string, isUp: boolean): void {
    this.table.junction_api_resource_up.set({ resource }, isUp ? 1 : 0);
  }

  resourceFailed(resource: string, reason: string): void {
    this.table.junction_api_failures_total.add({ resource, reason });
  }

  /** Programs have any name they like; only the first few get a series. */
  foreignChange(family: Family, name: string): void {
    const isShown = this.#programs.has(name) || this.#programs.size < MOST_PROGRAMS;
    if (isShown) this.#programs.add(name);
    this.table.junction_foreign_changes_total.add({
      ip_family: family,
      program: isShown ? name : 'other',
    });
  }
}

/**
 * One sync takes all changes that wait, and what is measured is the one that waited longest. Times are those of a steady
 * clock, in milliseconds.
 */
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

  /** The plan is in the kernel. Returns the seconds of each stage; `undefined`: no change was waiting for that. */
  written(now: number) {
    const writing = this.#writing;
    this.#writing = undefined;
    return (
      writing && {
        plan: (writing.plannedAt - writing.receivedAt) / 1000,
        write: (now - writing.plannedAt) / 1000,
        total: (now - writing.receivedAt) / 1000,
      }
    );
  }
}

export const faultMetrics: Collector = {
  collect: () => [
    {
      name: 'junction_faults_total',
      help: 'Faults that were survived: programs that could not be started or hung, netlink messages that were unreadable, lost or forged',
      type: 'counter',
      labelNames: ['fault'],
      samples: [...faultCounts()].map(([fault, value]) => ({ labels: [['fault', fault]], value })),
    },
  ],
};
