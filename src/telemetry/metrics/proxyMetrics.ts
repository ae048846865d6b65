/** What the proxy did, under the names that kube-proxy's dashboards and alerts know. */
import type { ModeName } from '../../model/mode.ts';
import type { ObjectKey } from '../../model/objects.ts';
import type { PlanChange, ServicePortPlan } from '../../plan/types.ts';
import { readings } from './exposition.ts';
import {
  counter,
  doubling,
  gauge,
  histogram,
  type Instruments,
  register,
  type Registry,
} from './instruments.ts';

/** Packets that the kernel counted for rules of ours. `undefined`: the counter cannot be read now, and is left out. */
interface PacketCounters {
  readonly invalidDropped?: (() => bigint | undefined) | undefined;
  readonly localhostNodePorts?: (() => bigint | undefined) | undefined;
}

const FAMILY = ['ip_family'] as const;
/** 1 ms to 16 s. */
const SYNC_BUCKETS = doubling(0.001, 15);
/** A quarter of a second to five minutes. */
const NETWORK_PROGRAMMING_BUCKETS: readonly number[] = [
  0.25,
  0.5,
  ...steps(1, 1, 59),
  ...steps(60, 5, 12),
  ...steps(120, 30, 7),
];

function steps(start: number, step: number, count: number): readonly number[] {
  return Array.from({ length: count }, (_, index) => start + step * index);
}

/** kube-proxy promises of none of its metrics that it stays. */
const KUBE_PROXY = { prefix: 'kubeproxy_', stability: '[ALPHA] ' } as const;

const IN_EVERY_MODE = {
  sync_proxy_rules_duration_seconds: histogram('SyncProxyRules latency in seconds', FAMILY, SYNC_BUCKETS),
  sync_proxy_rules_last_timestamp_seconds: gauge(
    'The last time proxy rules were successfully synced',
    FAMILY,
  ),
  sync_proxy_rules_last_queued_timestamp_seconds: gauge(
    'The last time a sync of proxy rules was queued',
    FAMILY,
  ),
  network_programming_duration_seconds: histogram(
    'In Cluster Network Programming Latency in seconds',
    FAMILY,
    NETWORK_PROGRAMMING_BUCKETS,
  ),
  sync_proxy_rules_endpoint_changes_pending: gauge('Pending proxy rules Endpoint changes'),
  sync_proxy_rules_endpoint_changes_total: counter('Cumulative proxy rules Endpoint changes'),
  sync_proxy_rules_service_changes_pending: gauge('Pending proxy rules Service changes'),
  sync_proxy_rules_service_changes_total: counter('Cumulative proxy rules Service changes'),
  sync_proxy_rules_no_local_endpoints_total: gauge(
    'Number of services with a Local traffic policy and no endpoints',
    ['ip_family', 'traffic_policy'],
  ),
  proxy_healthz_total: counter('Cumulative proxy healthz HTTP status', ['code']),
  proxy_livez_total: counter('Cumulative proxy livez HTTP status', ['code']),
  conntrack_reconciler_sync_duration_seconds: histogram(
    'ReconcileConntrackFlowsLatency latency in seconds',
    FAMILY,
    SYNC_BUCKETS,
  ),
  conntrack_reconciler_deleted_entries_total: counter(
    'Cumulative conntrack flows deleted by conntrack reconciler',
    FAMILY,
  ),
};

const BY_KIND_OF_SYNC = {
  sync_full_proxy_rules_duration_seconds: histogram(
    'SyncProxyRules latency in seconds for full resyncs',
    FAMILY,
    SYNC_BUCKETS,
  ),
  sync_partial_proxy_rules_duration_seconds: histogram(
    'SyncProxyRules latency in seconds for partial resyncs',
    FAMILY,
    SYNC_BUCKETS,
  ),
};
const RESTORE = {
  sync_proxy_rules_iptables_restore_failures_total: counter(
    'Cumulative proxy iptables restore failures',
    FAMILY,
  ),
};
const RULES = {
  sync_proxy_rules_iptables_partial_restore_failures_total: counter(
    'Cumulative proxy iptables partial restore failures',
    FAMILY,
  ),
  sync_proxy_rules_iptables_total: gauge('Total number of iptables rules owned by kube-proxy', [
    'table',
    'ip_family',
  ]),
  sync_proxy_rules_iptables_last: gauge('Number of iptables rules written by kube-proxy in last sync', [
    'table',
    'ip_family',
  ]),
};
const TRANSACTIONS = {
  sync_proxy_rules_nftables_sync_failures_total: counter('Cumulative proxy nftables sync failures', FAMILY),
  sync_proxy_rules_nftables_cleanup_failures_total: counter(
    'Cumulative proxy nftables cleanup failures',
    FAMILY,
  ),
};

const OF_MODE = {
  iptables: { ...BY_KIND_OF_SYNC, ...RESTORE, ...RULES },
  ipvs: RESTORE,
  nftables: { ...BY_KIND_OF_SYNC, ...TRANSACTIONS },
} as const;

/** What does not belong to the mode in force is not registered. */
export type ProxyMetrics = Instruments<typeof IN_EVERY_MODE> &
  Partial<Instruments<typeof BY_KIND_OF_SYNC & typeof RESTORE & typeof RULES & typeof TRANSACTIONS>>;

/** `packets`: counters in the kernel, read at each scrape. */
export function registerProxyMetrics(
  registry: Registry,
  mode: ModeName,
  packets: PacketCounters = {},
): ProxyMetrics {
  if (mode === 'iptables') registry.add({ collect: () => readPackets(packets) });
  return register(registry, { ...IN_EVERY_MODE, ...OF_MODE[mode] }, KUBE_PROXY);
}

function readPackets({ invalidDropped, localhostNodePorts }: PacketCounters): ReturnType<typeof readings> {
  return readings({
    kubeproxy_iptables_ct_state_invalid_dropped_packets_total: [
      '[ALPHA] packets dropped by iptables to work around conntrack problems',
      Number(invalidDropped?.()),
    ],
    kubeproxy_iptables_localhost_nodeports_accepted_packets_total: [
      '[ALPHA] Number of packets accepted on nodeports of loopback interface',
      Number(localhostNodePorts?.()),
    ],
  });
}

/** By traffic policy: how many want local endpoints, have none here, and have some elsewhere. */
interface NoLocalEndpointCounts {
  readonly internal: number;
  readonly external: number;
}

/** Counts what wants endpoints on this node and has them only elsewhere, from what changed. */
export class NoLocalEndpoints {
  readonly #byService = { internal: new Map<ObjectKey, number>(), external: new Map<ObjectKey, number>() };
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
    // Only the Local policy distinguishes pods from others; a service without any way in from outside drops everybody.
    const { pod, outside } = port.external;
    if (outside.verdict === 'drop' && pod.verdict !== 'drop') this.#count('external', port.service, by);
  }

  #count(policy: keyof NoLocalEndpointCounts, service: ObjectKey, by: 1 | -1): void {
    this.#servicePorts[policy] += by;
    const ofService = this.#byService[policy];
    const left = (ofService.get(service) ?? 0) + by;
    if (left === 0) ofService.delete(service);
    else ofService.set(service, left);
  }
}
