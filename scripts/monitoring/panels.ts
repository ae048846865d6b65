/**
 * The panels of the dashboard about what Junction is for, row by row. Queries are written without the variables of the
 * dashboard, which `dashboard.ts` adds to every selector.
 */
import { highest, quantiles, RATE, rate, type Row } from './panel.ts';
import { KERNEL_ROWS } from './kernelPanels.ts';
import { PROCESS_ROWS } from './processPanels.ts';

const HEALTH: Row = {
  title: 'Health',
  panels: [
    {
      title: 'Nodes',
      description: 'Junctions that Prometheus reaches.',
      kind: 'stat',
      unit: 'short',
      width: 4,
      queries: [{ query: 'sum(up)', legend: 'up' }],
    },
    {
      title: 'Not reached',
      description: 'Targets of the job that do not answer. Rules in their kernels stay as they were.',
      kind: 'stat',
      unit: 'short',
      width: 4,
      queries: [{ query: 'count(up) - sum(up)', legend: 'down' }],
    },
    {
      title: 'Refused service ports',
      description: 'Service ports whose rules a kernel refuses; above 0, the log of that node names them.',
      kind: 'stat',
      unit: 'short',
      width: 4,
      queries: [{ query: 'sum(junction_refused_service_ports)', legend: 'refused' }],
    },
    {
      title: 'Resources not watched',
      description: 'Resources of the API server that some node can neither list nor watch.',
      kind: 'stat',
      unit: 'short',
      width: 4,
      queries: [{ query: 'count(junction_api_resource_up) - sum(junction_api_resource_up)', legend: 'down' }],
    },
    {
      title: 'Shortest uptime',
      description: 'Since the youngest of them started.',
      kind: 'stat',
      unit: 's',
      width: 4,
      queries: [{ query: 'min(time() - process_start_time_seconds)', legend: 'uptime' }],
    },
    {
      title: 'Versions by node',
      description: 'Which Junction runs where, and in which mode.',
      kind: 'table',
      unit: 'short',
      width: 12,
      queries: [
        {
          query:
            'max by (instance, version, commit, build_date, node_version) (junction_build_info) * on (instance) group_left (mode) max by (instance, mode) (junction_mode_info)',
          legend: '{{instance}}',
        },
      ],
    },
    {
      title: '/healthz and /livez',
      description:
        'Answers at the health port. 503 of both: a change has been waiting for twice the sync period. 503 of /healthz alone: see its body.',
      unit: 'reqps',
      width: 6,
      queries: [
        { query: rate('kubeproxy_proxy_healthz_total', 'code'), legend: '/healthz {{code}}' },
        { query: rate('kubeproxy_proxy_livez_total', 'code'), legend: '/livez {{code}}' },
      ],
    },
    {
      title: 'Starts and faults',
      description: 'Starts after the first one, and faults that were survived.',
      unit: 'short',
      width: 6,
      queries: [
        {
          query: highest(`sum by (instance) (changes(process_start_time_seconds${RATE}))`),
          legend: '{{instance}} starts',
        },
        { query: `sum by (fault) (increase(junction_faults_total${RATE}))`, legend: '{{fault}}' },
      ],
    },
  ],
};

const SYNC: Row = {
  title: 'Syncs',
  panels: [
    {
      title: 'Sync duration',
      description: 'Every sync, whether it succeeded or not.',
      unit: 's',
      queries: quantiles('kubeproxy_sync_proxy_rules_duration_seconds_bucket', 'ip_family', '{{ip_family}}'),
    },
    {
      title: 'Full syncs',
      description: 'Those that read the kernel back: at the start, after a failure, each sync period.',
      unit: 's',
      queries: quantiles(
        'kubeproxy_sync_full_proxy_rules_duration_seconds_bucket',
        'ip_family',
        '{{ip_family}}',
      ),
    },
    {
      title: 'Partial syncs',
      description: 'Those that wrote only what changed.',
      unit: 's',
      queries: quantiles(
        'kubeproxy_sync_partial_proxy_rules_duration_seconds_bucket',
        'ip_family',
        '{{ip_family}}',
      ),
    },
    {
      title: 'Network programming latency',
      description:
        "From a pod's or service's change in the cluster to the kernel of the node; the way before Junction is part of it.",
      unit: 's',
      queries: quantiles(
        'kubeproxy_network_programming_duration_seconds_bucket',
        'ip_family',
        '{{ip_family}}',
      ),
    },
    {
      title: "Junction's part of it",
      description: 'From the event to the plan, from the plan to the kernel, and both.',
      unit: 's',
      queries: quantiles('junction_change_duration_seconds_bucket', 'stage', '{{stage}}'),
    },
    {
      title: 'Slowest nodes',
      description: 'Where one change in a hundred takes longest from its event to the kernel.',
      unit: 's',
      queries: [
        {
          query: highest(
            `histogram_quantile(0.99, sum by (instance, le) (rate(junction_change_duration_seconds_bucket{stage="total"}${RATE})))`,
          ),
          legend: '{{instance}}',
        },
      ],
    },
    {
      title: 'Age of the last sync',
      description: 'Since a sync last succeeded. A quiet node syncs once each sync period.',
      unit: 's',
      queries: [
        {
          query: highest(
            'max by (instance, ip_family) (time() - kubeproxy_sync_proxy_rules_last_timestamp_seconds)',
          ),
          legend: '{{instance}} {{ip_family}}',
        },
      ],
    },
    {
      title: 'Behind',
      description:
        'By how much the last request for a sync is later than the last sync that succeeded; 0: nothing waits.',
      unit: 's',
      queries: [
        {
          query: highest(
            'max by (instance, ip_family) (clamp_min(kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds - kubeproxy_sync_proxy_rules_last_timestamp_seconds, 0))',
          ),
          legend: '{{instance}} {{ip_family}}',
        },
      ],
    },
    {
      title: 'Syncs by kind',
      description:
        'full: read the kernel back; incremental: wrote what changed; nothing: nothing to write; failed.',
      unit: 'ops',
      queries: [{ query: rate('junction_syncs_total', 'kind'), legend: '{{kind}}' }],
    },
    {
      title: 'Failures',
      description: 'Restores and transactions that failed; the log names table, service and cause.',
      unit: 'ops',
      width: 12,
      queries: [
        {
          query: rate('kubeproxy_sync_proxy_rules_iptables_restore_failures_total', 'ip_family'),
          legend: 'restore {{ip_family}}',
        },
        {
          query: rate('kubeproxy_sync_proxy_rules_iptables_partial_restore_failures_total', 'ip_family'),
          legend: 'partial restore {{ip_family}}',
        },
        {
          query: rate('kubeproxy_sync_proxy_rules_nftables_sync_failures_total', 'ip_family'),
          legend: 'nftables transaction {{ip_family}}',
        },
        {
          query: rate('kubeproxy_sync_proxy_rules_nftables_cleanup_failures_total', 'ip_family'),
          legend: 'nftables clean-up {{ip_family}}',
        },
      ],
    },
    {
      title: 'Refused service ports by node',
      description: 'What they had before stays in force.',
      unit: 'short',
      width: 12,
      queries: [
        {
          query: highest('sum by (instance, ip_family) (junction_refused_service_ports)'),
          legend: '{{instance}} {{ip_family}}',
        },
      ],
    },
  ],
};

export const ROWS: readonly Row[] = [HEALTH, SYNC, ...KERNEL_ROWS, ...PROCESS_ROWS];
