/** The panels about changes that come in, and about what is in the kernel. */
import { highest, quantiles, RATE, rate, type Row } from './panel.ts';

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
  title: 'The kernel: foreign changes, connections',
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
    {
      title: 'Age of the connection counters',
      description:
        'The kernel is asked once in 30 seconds. Older: it takes long to answer, and the two panels before stand still.',
      unit: 's',
      queries: [
        { query: highest('max by (instance) (junction_connections_age_seconds)'), legend: '{{instance}}' },
      ],
    },
  ],
};

export const KERNEL_ROWS: readonly Row[] = [CHANGES, KERNEL];
