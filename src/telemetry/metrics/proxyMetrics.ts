import type { Family } from '../../model/ip.ts';
import {
  NETWORK_PROGRAMMING_BUCKETS,
  SYNC_BUCKETS,
  Counter,
  Gauge,
  Histogram,
  type Registry,
  type Collector,
} from './instruments.ts';
import type { MetricFamily } from './exposition.ts';
import type { ObjectKey } from '../../model/objects.ts';
import type { PlanChange, ServicePortPlan } from '../../plan/types.ts';

/**
 * What the proxy did, under the names that kube-proxy's dashboards and alerts know, each told by a method that says
 * what happened. What does not belong to the mode in force is not registered, and telling it does nothing.
 */

export type ProxyMode = 'iptables' | 'ipvs' | 'nftables';
export type RuleTable = 'filter' | 'nat';

export interface ProxyMetricsOptions {
  readonly registry: Registry;
  readonly mode: ProxyMode;
  /** Seconds since 1970. */
  readonly unixSeconds?: (() => number) | undefined;
  /** Counters in the kernel, read when somebody asks. Only where they exist. */
  readonly packets?: PacketCounters | undefined;
}

export interface EndedSync {
  readonly family: Family;
  readonly kind: 'full' | 'partial';
  readonly seconds: number;
  readonly succeeded: boolean;
}

const FAMILY = ['ip_family'] as const;
const of = (family: Family): { readonly ip_family: Family } => ({ ip_family: family });

export class ProxyMetrics {
  readonly #unixSeconds: () => number;
  readonly #shared: ReturnType<typeof sharedMetrics>;
  readonly #ofMode: ReturnType<typeof modeMetrics>;

  constructor({ registry, mode, unixSeconds, packets }: ProxyMetricsOptions) {
    this.#unixSeconds = unixSeconds ?? (() => Date.now() / 1000);
    this.#shared = sharedMetrics(registry);
    this.#ofMode = modeMetrics(registry, mode);
    if (mode === 'iptables' && packets) registry.add(packetCounters(packets));
  }

  /** A sync was asked for, or the family's loop has begun. */
  queued(family: Family): void {
    this.#shared.lastQueued.set(of(family), this.#unixSeconds());
  }

  /** Every attempt that was not put off for want of the first full picture. */
  syncEnded({ family, kind, seconds, succeeded }: EndedSync): void {
    this.#shared.duration.observe(of(family), seconds);
    const { fullDuration, partialDuration } = this.#ofMode;
    (kind === 'full' ? fullDuration : partialDuration)?.observe(of(family), seconds);
    if (succeeded) this.#shared.lastSynced.set(of(family), this.#unixSeconds());
  }

  /** An event about a service, whether or not it changed anything; once for each family. */
  serviceEvent(): void {
    this.#shared.serviceChanges.add({});
  }

  endpointEvent(): void {
    this.#shared.endpointChanges.add({});
  }

  servicesPending(count: number): void {
    this.#shared.servicesPending.set({}, count);
  }

  endpointsPending(count: number): void {
    this.#shared.endpointsPending.set({}, count);
  }

  /** How many want local endpoints, have none here, and have some elsewhere. */
  noLocalEndpoints(family: Family, counts: { readonly internal: number; readonly external: number }): void {
    const gauge = this.#shared.noLocalEndpoints;
    gauge.set({ ...of(family), traffic_policy: 'internal' }, counts.internal);
    gauge.set({ ...of(family), traffic_policy: 'external' }, counts.external);
  }

  /** From the change in the cluster to the kernel of this node. */
  networkProgrammed(family: Family, seconds: number): void {
    this.#shared.networkProgramming.observe(of(family), seconds);
  }

  conntrackReconciled(
    family: Family,
    { seconds, deleted }: { readonly seconds: number; readonly deleted: number },
  ): void {
    this.#shared.conntrackDuration.observe(of(family), seconds);
    this.#shared.conntrackDeleted.add(of(family), deleted);
  }

  healthzAnswered(code: string): void {
    this.#shared.healthz.add({ code });
  }

  livezAnswered(code: string): void {
    this.#shared.livez.add({ code });
  }

  restoreFailed(family: Family): void {
    this.#ofMode.restoreFailures?.add(of(family));
  }

  /** A sync of what had changed, whatever it failed of, as in kube-proxy. */
  partialSyncFailed(family: Family): void {
    this.#ofMode.partialRestoreFailures?.add(of(family));
  }

  rules(
    family: Family,
    table: RuleTable,
    { owned, written }: { readonly owned: number; readonly written: number },
  ): void {
    this.#ofMode.rulesOwned?.set({ ...of(family), table }, owned);
    this.#ofMode.rulesWritten?.set({ ...of(family), table }, written);
  }

  nftablesSyncFailed(family: Family): void {
    this.#ofMode.nftablesSyncFailures?.add(of(family));
  }

  nftablesCleanupFailed(family: Family): void {
    this.#ofMode.nftablesCleanupFailures?.add(of(family));
  }
}

/** In every mode. */
function sharedMetrics(registry: Registry) {
  const make = maker(registry);
  return {
    duration: make.syncHistogram('sync_proxy_rules_duration_seconds', 'SyncProxyRules latency in seconds'),
    lastSynced: make.gauge(
      'sync_proxy_rules_last_timestamp_seconds',
      'The last time proxy rules were successfully synced',
      FAMILY,
    ),
    lastQueued: make.gauge(
      'sync_proxy_rules_last_queued_timestamp_seconds',
      'The last time a sync of proxy rules was queued',
      FAMILY,
    ),
    networkProgramming: make.histogram(
      'network_programming_duration_seconds',
      'In Cluster Network Programming Latency in seconds',
      NETWORK_PROGRAMMING_BUCKETS,
    ),
    endpointsPending: make.gauge(
      'sync_proxy_rules_endpoint_changes_pending',
      'Pending proxy rules Endpoint changes',
      [],
    ),
    endpointChanges: make.counter(
      'sync_proxy_rules_endpoint_changes_total',
      'Cumulative proxy rules Endpoint changes',
      [],
    ),
    servicesPending: make.gauge(
      'sync_proxy_rules_service_changes_pending',
      'Pending proxy rules Service changes',
      [],
    ),
    serviceChanges: make.counter(
      'sync_proxy_rules_service_changes_total',
      'Cumulative proxy rules Service changes',
      [],
    ),
    noLocalEndpoints: make.gauge(
      'sync_proxy_rules_no_local_endpoints_total',
      'Number of services with a Local traffic policy and no endpoints',
      ['ip_family', 'traffic_policy'],
    ),
    healthz: make.counter('proxy_healthz_total', 'Cumulative proxy healthz HTTP status', ['code']),
    livez: make.counter('proxy_livez_total', 'Cumulative proxy livez HTTP status', ['code']),
    conntrackDuration: make.syncHistogram(
      'conntrack_reconciler_sync_duration_seconds',
      'ReconcileConntrackFlowsLatency latency in seconds',
    ),
    conntrackDeleted: make.counter(
      'conntrack_reconciler_deleted_entries_total',
      'Cumulative conntrack flows deleted by conntrack reconciler',
      FAMILY,
    ),
  };
}

function modeMetrics(registry: Registry, mode: ProxyMode) {
  const make = maker(registry);
  const inModes = <T>(modes: readonly ProxyMode[], create: () => T): T | undefined =>
    modes.includes(mode) ? create() : undefined;
  const counterIn = (
    modes: readonly ProxyMode[],
    name: string,
    help: string,
  ): Counter<'ip_family'> | undefined => inModes(modes, () => make.counter(name, help, FAMILY));
  return {
    fullDuration: inModes(['iptables', 'nftables'], () =>
      make.syncHistogram(
        'sync_full_proxy_rules_duration_seconds',
        'SyncProxyRules latency in seconds for full resyncs',
      ),
    ),
    partialDuration: inModes(['iptables', 'nftables'], () =>
      make.syncHistogram(
        'sync_partial_proxy_rules_duration_seconds',
        'SyncProxyRules latency in seconds for partial resyncs',
      ),
    ),
    restoreFailures: counterIn(
      ['iptables', 'ipvs'],
      'sync_proxy_rules_iptables_restore_failures_total',
      'Cumulative proxy iptables restore failures',
    ),
    partialRestoreFailures: counterIn(
      ['iptables'],
      'sync_proxy_rules_iptables_partial_restore_failures_total',
      'Cumulative proxy iptables partial restore failures',
    ),
    rulesOwned: inModes(['iptables'], () =>
      make.gauge('sync_proxy_rules_iptables_total', 'Total number of iptables rules owned by kube-proxy', [
        'table',
        'ip_family',
      ]),
    ),
    rulesWritten: inModes(['iptables'], () =>
      make.gauge(
        'sync_proxy_rules_iptables_last',
        'Number of iptables rules written by kube-proxy in last sync',
        ['table', 'ip_family'],
      ),
    ),
    nftablesSyncFailures: counterIn(
      ['nftables'],
      'sync_proxy_rules_nftables_sync_failures_total',
      'Cumulative proxy nftables sync failures',
    ),
    nftablesCleanupFailures: counterIn(
      ['nftables'],
      'sync_proxy_rules_nftables_cleanup_failures_total',
      'Cumulative proxy nftables cleanup failures',
    ),
  };
}

/** Registers under kube-proxy's prefix, and says as it does that none of its metrics is promised to stay. */
function maker(registry: Registry) {
  const named = (name: string, help: string) => ({ name: `kubeproxy_${name}`, help: `[ALPHA] ${help}` });
  const histogram = (name: string, help: string, buckets: readonly number[]): Histogram<'ip_family'> =>
    registry.add(new Histogram({ ...named(name, help), labels: FAMILY, buckets }));
  return {
    counter: <L extends string>(name: string, help: string, labels: readonly L[]): Counter<L> =>
      registry.add(new Counter({ ...named(name, help), labels })),
    gauge: <L extends string>(name: string, help: string, labels: readonly L[]): Gauge<L> =>
      registry.add(new Gauge({ ...named(name, help), labels })),
    histogram,
    syncHistogram: (name: string, help: string): Histogram<'ip_family'> =>
      histogram(name, help, SYNC_BUCKETS),
  };
}

/** Packets that the kernel counted for rules of ours. */

/** Each reads one counter; `undefined`: it cannot be read now. */
export interface PacketCounters {
  readonly invalidDropped?: (() => bigint | undefined) | undefined;
  readonly localhostNodePorts?: (() => bigint | undefined) | undefined;
}

const KNOWN = [
  {
    counter: 'invalidDropped',
    name: 'kubeproxy_iptables_ct_state_invalid_dropped_packets_total',
    help: '[ALPHA] packets dropped by iptables to work around conntrack problems',
  },
  {
    counter: 'localhostNodePorts',
    name: 'kubeproxy_iptables_localhost_nodeports_accepted_packets_total',
    help: '[ALPHA] Number of packets accepted on nodeports of loopback interface',
  },
] as const;

export function packetCounters(counters: PacketCounters): Collector {
  return {
    collect: () =>
      KNOWN.flatMap(({ counter, name, help }): readonly MetricFamily[] => {
        const packets = counters[counter]?.();
        if (packets === undefined) return [];
        return [
          { name, help, type: 'counter', samples: [{ suffix: '', labels: [], value: Number(packets) }] },
        ];
      }),
  };
}

/** Counts what wants endpoints on this node and has them only elsewhere, by looking at what changed. */

type Policy = 'internal' | 'external';

export interface NoLocalEndpointCounts {
  readonly internal: number;
  readonly external: number;
}

export class NoLocalEndpoints {
  readonly #byService: Readonly<Record<Policy, Map<ObjectKey, number>>> = {
    internal: new Map(),
    external: new Map(),
  };
  readonly #servicePorts = { internal: 0, external: 0 };

  apply(changes: Iterable<PlanChange>): void {
    for (const { previous, current } of changes) {
      this.#add(previous, -1);
      this.#add(current, 1);
    }
  }

  get servicePorts(): NoLocalEndpointCounts {
    return { ...this.#servicePorts };
  }

  get services(): NoLocalEndpointCounts {
    return { internal: this.#byService.internal.size, external: this.#byService.external.size };
  }

  #add(port: ServicePortPlan | undefined, by: 1 | -1): void {
    if (!port) return;
    // Without any endpoint a packet is rejected, so a drop means that there are some elsewhere.
    if (port.internal.outside.verdict === 'drop') this.#count('internal', port.service, by);
    // Only the Local policy tells pods from others; a service without any way in from outside drops everybody.
    const { pod, outside } = port.external;
    if (outside.verdict === 'drop' && pod.verdict !== 'drop') this.#count('external', port.service, by);
  }

  #count(policy: Policy, service: ObjectKey, by: 1 | -1): void {
    this.#servicePorts[policy] += by;
    const ofService = this.#byService[policy];
    const left = (ofService.get(service) ?? 0) + by;
    if (left === 0) ofService.delete(service);
    else ofService.set(service, left);
  }
}
