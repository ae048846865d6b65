import { describe, expect, test } from 'vitest';
import { registerProxyMetrics } from '../../../src/telemetry/metrics/proxyMetrics.ts';
import { Registry } from '../../../src/telemetry/metrics/instruments.ts';
import { useEach } from './everything.ts';
import { parseExposition } from './parse.ts';

type ModeName = 'iptables' | 'ipvs' | 'nftables';

type Packets = Parameters<typeof registerProxyMetrics>[2];

function stage(mode: ModeName = 'iptables', packets?: Packets) {
  const registry = new Registry();
  return { registry, metrics: registerProxyMetrics(registry, mode, packets) };
}

async function names({ registry }: ReturnType<typeof stage>): Promise<readonly string[]> {
  return parseExposition(await registry.print()).map(({ name }) => name.replace('kubeproxy_', ''));
}

const QUIET = [
  'sync_proxy_rules_endpoint_changes_pending',
  'sync_proxy_rules_endpoint_changes_total',
  'sync_proxy_rules_service_changes_pending',
  'sync_proxy_rules_service_changes_total',
];

test.each(['iptables', 'ipvs', 'nftables'] as const)('%s: before anything has happened', async (mode) => {
  expect(await names(stage(mode))).toEqual(QUIET);
});

test('the first syncs of both families, in iptables mode', async () => {
  const { registry, metrics } = stage('iptables', {
    invalidDropped: () => 12n,
    localhostNodePorts: () => 0n,
  });
  const now = 1_794_713_732.624_368_2;
  for (const ip_family of ['IPv4', 'IPv6']) {
    metrics.sync_proxy_rules_last_queued_timestamp_seconds.set({ ip_family }, now);
    metrics.sync_proxy_rules_service_changes_total.add({}, 2);
    metrics.sync_proxy_rules_endpoint_changes_total.add({});
    for (const traffic_policy of ['internal', 'external'])
      metrics.sync_proxy_rules_no_local_endpoints_total.set(
        { ip_family, traffic_policy },
        traffic_policy === 'external' && ip_family === 'IPv4' ? 1 : 0,
      );
    for (const [table, rules] of [
      ['filter', 9],
      ['nat', 71],
    ] as const) {
      metrics.sync_proxy_rules_iptables_total?.set({ ip_family, table }, rules);
      metrics.sync_proxy_rules_iptables_last?.set({ ip_family, table }, rules);
    }
    metrics.sync_proxy_rules_duration_seconds.observe({ ip_family }, 0.0009);
    metrics.sync_full_proxy_rules_duration_seconds?.observe({ ip_family }, 0.0009);
    metrics.sync_proxy_rules_last_timestamp_seconds.set({ ip_family }, now);
  }
  const labels = { ip_family: 'IPv4' };
  metrics.sync_proxy_rules_duration_seconds.observe(labels, 0.003);
  metrics.sync_partial_proxy_rules_duration_seconds?.observe(labels, 0.003);
  metrics.sync_proxy_rules_iptables_restore_failures_total?.add(labels);
  metrics.sync_proxy_rules_iptables_partial_restore_failures_total?.add(labels);
  metrics.conntrack_reconciler_sync_duration_seconds.observe(labels, 0.25);
  metrics.conntrack_reconciler_deleted_entries_total.add(labels, 3);
  for (const code of ['200', '503']) metrics.proxy_healthz_total.add({ code });
  metrics.sync_proxy_rules_service_changes_pending.set({}, 2);
  const text = await registry.print();
  parseExposition(text);
  await expect(text).toMatchFileSnapshot('golden/iptables.txt');
});

describe('what each mode has', () => {
  const everything = async (mode: ModeName): Promise<readonly string[]> => {
    const made = stage(mode, { invalidDropped: () => 1n, localhostNodePorts: () => 1n });
    useEach(made.metrics);
    return names(made);
  };
  const ALL = [
    ...QUIET,
    'conntrack_reconciler_deleted_entries_total',
    'conntrack_reconciler_sync_duration_seconds',
    'network_programming_duration_seconds',
    'proxy_healthz_total',
    'proxy_livez_total',
    'sync_proxy_rules_duration_seconds',
    'sync_proxy_rules_last_queued_timestamp_seconds',
    'sync_proxy_rules_last_timestamp_seconds',
    'sync_proxy_rules_no_local_endpoints_total',
  ];
  const KINDS = ['sync_full_proxy_rules_duration_seconds', 'sync_partial_proxy_rules_duration_seconds'];
  test.each([
    [
      'iptables',
      [
        ...KINDS,
        'iptables_ct_state_invalid_dropped_packets_total',
        'iptables_localhost_nodeports_accepted_packets_total',
        'sync_proxy_rules_iptables_last',
        'sync_proxy_rules_iptables_partial_restore_failures_total',
        'sync_proxy_rules_iptables_restore_failures_total',
        'sync_proxy_rules_iptables_total',
      ],
    ],
    ['ipvs', ['sync_proxy_rules_iptables_restore_failures_total']],
    [
      'nftables',
      [
        ...KINDS,
        'sync_proxy_rules_nftables_cleanup_failures_total',
        'sync_proxy_rules_nftables_sync_failures_total',
      ],
    ],
  ] as const)('%s', async (mode, own) => {
    expect(await everything(mode)).toEqual([...ALL, ...own].sort());
  });
});

describe('packets counted in the kernel', () => {
  test.each([
    ['cannot be read', { invalidDropped: () => undefined }],
    ['does not exist', {}],
  ])('a counter that %s is not shown', async (_, packets) => {
    expect(await names(stage('iptables', packets))).toEqual(QUIET);
  });
});

test('the bounds of network programming', async () => {
  const { registry, metrics } = stage();
  metrics.network_programming_duration_seconds.observe({ ip_family: 'IPv4' }, 42);
  const [family] = parseExposition(await registry.print());
  const bounds = family?.samples.flatMap(({ labels }) =>
    labels.filter(([name]) => name === 'le').map(([, le]) => le),
  );
  expect(bounds?.slice(0, 5)).toEqual(['0.25', '0.5', '1', '2', '3']);
  expect(bounds?.slice(59, 64)).toEqual(['58', '59', '60', '65', '70']);
  expect(bounds?.slice(-9)).toEqual(['115', '120', '150', '180', '210', '240', '270', '300', '+Inf']);
  expect(bounds).toHaveLength(81);
});
