/**
 * What kubernetes-mixin asks of kube-proxy: metric and label names of its alerts (alerts/kube_proxy.libsonnet,
 * alerts/system_alerts.libsonnet) and of its dashboard Kubernetes / Proxy (dashboards/proxy.libsonnet), as of August 2026.
 * kube-prometheus and its Grafana have the same ones. Thresholds and functions are not repeated here.
 */
export interface Query {
  /** The alert, or the title of the panel. */
  readonly of: string;
  /** With the suffix of a histogram's series. */
  readonly metric: string;
  /** Labels that the query selects by; what a pattern must match. */
  readonly select: Readonly<Record<string, RegExp>>;
  /** Labels that it groups by or prints. */
  readonly by: readonly string[];
}

const JOB = { job: /^kube-proxy$/ };
/** `cluster` is empty unless Prometheus is told one; `$cluster` is then empty too. */
const PANEL = { ...JOB, cluster: /^/, instance: /^.+$/ };

function panel(
  of: string,
  metric: string,
  select: Readonly<Record<string, RegExp>> = {},
  by: readonly string[] = [],
): Query {
  return { of, metric, select: { ...PANEL, ...select }, by };
}

export const QUERIES: readonly Query[] = [
  { of: 'KubeProxyDown', metric: 'up', select: JOB, by: [] },
  { of: 'KubeProxyInstanceUnreachable', metric: 'up', select: JOB, by: ['instance'] },
  {
    of: 'KubeVersionMismatch',
    metric: 'kubernetes_build_info',
    select: { job: /^(?!kube-dns$|coredns$)/, git_version: /^v1\.36\./ },
    by: ['git_version'],
  },
  panel('Up', 'up'),
  panel('Rules Sync Rate', 'kubeproxy_sync_proxy_rules_duration_seconds_count'),
  panel('Rules Sync Latency', 'kubeproxy_sync_proxy_rules_duration_seconds_bucket', {}, ['instance', 'le']),
  panel('Network Programming Rate', 'kubeproxy_network_programming_duration_seconds_count'),
  panel('Network Programming Latency', 'kubeproxy_network_programming_duration_seconds_bucket', {}, [
    'instance',
    'le',
  ]),
  // 3xx, 4xx and 5xx are the same query; nothing answers so in a quiet cluster.
  panel('Kube API Request Rate', 'rest_client_requests_total', { code: /^2..$/ }),
  panel('Post Request Latency', 'rest_client_request_duration_seconds_bucket', { verb: /^POST$/ }, [
    'verb',
    'le',
  ]),
  panel('Get Request Latency', 'rest_client_request_duration_seconds_bucket', { verb: /^GET$/ }, [
    'verb',
    'le',
  ]),
  panel('Memory', 'process_resident_memory_bytes', {}, ['instance']),
  panel('CPU usage', 'process_cpu_seconds_total', {}, ['instance']),
  panel('Goroutines', 'go_goroutines', {}, ['instance']),
];
