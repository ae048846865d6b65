/**
 * The panels of the dashboard about what Junction is for, row by row. Queries are written without the variables of the
 * dashboard, which `dashboard.ts` adds to every selector.
 */
import { highest, quantiles, RATE, rate, type Row } from './panel.ts';
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
      title: 'Packets that go astray',
      description:
        'Packets that were walked through the rules in a kernel and go elsewhere than planned. It is to be 0.',
      kind: 'stat',
      unit: 'short',
      width: 4,
      queries: [{ query: 'sum(junction_proof_disagreements)', legend: 'disagreements' }],
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
      title: 'Crashes and faults',
      description: 'Runs that crashed, since the state directory was empty; and faults that were survived.',
      unit: 'short',
      width: 6,
      queries: [
        {
          query: highest('sum by (instance, cause) (junction_previous_crashes_total)'),
          legend: '{{instance}} {{cause}}',
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

const CHANGES: Row = {
  title: 'Changes and what is programmed',
  panels: [
    {
      title: 'Changes that wait',
      description: 'For a sync.',
      unit: 'short',
      queries: [
        { query: 'sum(kubeproxy_sync_proxy_rules_service_changes_pending)', legend: 'services' },
        { query: 'sum(kubeproxy_sync_proxy_rules_endpoint_changes_pending)', legend: 'endpoint slices' },
      ],
    },
    {
      title: 'Events',
      description:
        'About services (counted in each family) and EndpointSlices, whether or not they changed anything.',
      unit: 'ops',
      queries: [
        { query: `sum(rate(kubeproxy_sync_proxy_rules_service_changes_total${RATE}))`, legend: 'services' },
        {
          query: `sum(rate(kubeproxy_sync_proxy_rules_endpoint_changes_total${RATE}))`,
          legend: 'endpoint slices',
        },
      ],
    },
    {
      title: 'Local policy without local endpoints',
      description:
        'Service ports (ipvs: services) with a Local policy whose endpoints are all on other nodes; their traffic is dropped there.',
      unit: 'short',
      queries: [
        {
          query: highest(
            'sum by (instance, traffic_policy) (kubeproxy_sync_proxy_rules_no_local_endpoints_total)',
          ),
          legend: '{{instance}} {{traffic_policy}}',
        },
      ],
    },
    {
      title: 'Service ports',
      description: 'In the plan of a node; every node has the same ones.',
      unit: 'short',
      queries: [{ query: 'max by (ip_family) (junction_service_ports)', legend: '{{ip_family}}' }],
    },
    {
      title: 'Endpoints',
      description: 'Of all service ports.',
      unit: 'short',
      queries: [{ query: 'max by (ip_family) (junction_endpoints)', legend: '{{ip_family}}' }],
    },
    {
      title: 'iptables rules',
      description: 'Rules that are ours, and those that the last sync wrote. iptables mode alone.',
      unit: 'short',
      queries: [
        {
          query: 'max by (table, ip_family) (kubeproxy_sync_proxy_rules_iptables_total)',
          legend: '{{table}} {{ip_family}}',
        },
        {
          query: 'max by (table, ip_family) (kubeproxy_sync_proxy_rules_iptables_last)',
          legend: 'written: {{table}} {{ip_family}}',
        },
      ],
    },
  ],
};

const KERNEL: Row = {
  title: 'The kernel: foreign changes, proof, connections',
  panels: [
    {
      title: 'Foreign changes by program',
      description: 'Changes that other programs made to our rules, each repaired.',
      unit: 'ops',
      queries: [{ query: rate('junction_foreign_changes_total', 'program'), legend: '{{program}}' }],
    },
    {
      title: 'Foreign changes by node',
      description: 'Where they were made.',
      unit: 'ops',
      queries: [
        { query: highest(rate('junction_foreign_changes_total', 'instance')), legend: '{{instance}}' },
      ],
    },
    {
      title: 'Packets proved',
      description: 'Walked through the rules in the kernel after syncs, and compared with the plan.',
      unit: 'ops',
      queries: [{ query: rate('junction_proof_packets_total', 'result'), legend: '{{result}}' }],
    },
    {
      title: 'Disagreements',
      description:
        'With which the kernel does something else than is planned: now, and found since the start.',
      unit: 'short',
      queries: [
        {
          query: highest('sum by (instance, ip_family) (junction_proof_disagreements)'),
          legend: 'now: {{instance}} {{ip_family}}',
        },
        {
          query: highest('sum by (instance, ip_family) (junction_proof_disagreements_total)'),
          legend: 'found: {{instance}} {{ip_family}}',
        },
      ],
    },
    {
      title: 'Time of the proof',
      description: 'To walk one packet, reading the rules included.',
      unit: 's',
      queries: quantiles('junction_proof_duration_seconds_bucket', 'ip_family', '{{ip_family}}'),
    },
    {
      title: 'CPU of the proof',
      description: 'It stays below a hundredth of one core.',
      unit: 'percentunit',
      queries: [
        {
          query: highest(rate('junction_proof_processor_seconds_total', 'instance')),
          legend: '{{instance}}',
        },
      ],
    },
    {
      title: 'Conntrack reconciler',
      description: 'Looking for stale connections.',
      unit: 's',
      queries: quantiles(
        'kubeproxy_conntrack_reconciler_sync_duration_seconds_bucket',
        'ip_family',
        '{{ip_family}}',
      ),
    },
    {
      title: 'Stale connections deleted',
      description: 'UDP and SCTP connections to endpoints that are gone.',
      unit: 'ops',
      queries: [
        {
          query: rate('kubeproxy_conntrack_reconciler_deleted_entries_total', 'ip_family'),
          legend: '{{ip_family}}',
        },
      ],
    },
    {
      title: 'Packets counted by nfacct',
      description:
        'iptables mode, where the kernel has nfacct: dropped because conntrack calls them invalid; to node ports on loopback.',
      unit: 'pps',
      queries: [
        {
          query: `sum(rate(kubeproxy_iptables_ct_state_invalid_dropped_packets_total${RATE}))`,
          legend: 'invalid, dropped',
        },
        {
          query: `sum(rate(kubeproxy_iptables_localhost_nodeports_accepted_packets_total${RATE}))`,
          legend: 'node ports on loopback',
        },
      ],
    },
    {
      title: 'Connections by service',
      description:
        'nftables mode with junction.nftablesCounters, and ipvs mode: the ten services with most new connections.',
      unit: 'cps',
      width: 12,
      queries: [
        {
          query: highest(rate('junction_service_connections_total', 'service_port, protocol')),
          legend: '{{service_port}} {{protocol}}',
        },
      ],
    },
    {
      title: 'Connections by endpoint',
      description: 'The ten endpoints with most new connections.',
      unit: 'cps',
      width: 12,
      queries: [
        {
          query: highest(rate('junction_endpoint_connections_total', 'endpoint, service_port')),
          legend: '{{endpoint}} {{service_port}}',
        },
      ],
    },
  ],
};

export const ROWS: readonly Row[] = [HEALTH, SYNC, CHANGES, KERNEL, ...PROCESS_ROWS];
