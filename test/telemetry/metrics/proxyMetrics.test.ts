import { describe, expect, test } from 'vitest';
import { ProxyMetrics } from '../../../src/telemetry/metrics/proxyMetrics.ts';
import { Registry } from '../../../src/telemetry/metrics/instruments.ts';
import { parseExposition } from './parse.ts';

type ModeName = 'iptables' | 'ipvs' | 'nftables';

function stage(
  mode: ModeName = 'iptables',
  options: Partial<ConstructorParameters<typeof ProxyMetrics>[0]> = {},
) {
  const registry = new Registry();
  const metrics = new ProxyMetrics({
    registry,
    mode,
    unixSeconds: () => 1_794_713_732.624_368_2,
    ...options,
  });
  return { registry, metrics };
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
    packets: { invalidDropped: () => 12n, localhostNodePorts: () => 0n },
  });
  for (const family of ['IPv4', 'IPv6'] as const) {
    metrics.queued(family);
    metrics.serviceEvent();
    metrics.serviceEvent();
    metrics.endpointEvent();
    metrics.noLocalEndpoints(family, { internal: 0, external: family === 'IPv4' ? 1 : 0 });
    metrics.rules(family, 'filter', { owned: 9, written: 9 });
    metrics.rules(family, 'nat', { owned: 71, written: 71 });
    metrics.syncEnded({ family, kind: 'full', seconds: 0.0009, succeeded: true });
  }
  metrics.syncEnded({ family: 'IPv4', kind: 'partial', seconds: 0.003, succeeded: false });
  metrics.restoreFailed('IPv4');
  metrics.partialSyncFailed('IPv4');
  metrics.conntrackReconciled('IPv4', { seconds: 0.25, deleted: 3 });
  metrics.healthzAnswered('200');
  metrics.healthzAnswered('503');
  metrics.servicesPending(2);
  const text = await registry.print();
  parseExposition(text);
  await expect(text).toMatchFileSnapshot('golden/iptables.txt');
});

describe('what each mode has', () => {
  const everything = async (mode: ModeName): Promise<readonly string[]> => {
    const made = stage(mode, { packets: { invalidDropped: () => 1n, localhostNodePorts: () => 1n } });
    const { metrics } = made;
    metrics.queued('IPv4');
    metrics.syncEnded({ family: 'IPv4', kind: 'full', seconds: 1, succeeded: true });
    metrics.syncEnded({ family: 'IPv4', kind: 'partial', seconds: 1, succeeded: true });
    metrics.networkProgrammed('IPv4', 1);
    metrics.noLocalEndpoints('IPv4', { internal: 1, external: 1 });
    metrics.healthzAnswered('200');
    metrics.livezAnswered('200');
    metrics.restoreFailed('IPv4');
    metrics.partialSyncFailed('IPv4');
    metrics.rules('IPv4', 'nat', { owned: 1, written: 1 });
    metrics.nftablesSyncFailed('IPv4');
    metrics.nftablesCleanupFailed('IPv4');
    metrics.conntrackReconciled('IPv4', { seconds: 1, deleted: 1 });
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

describe('a sync', () => {
  test('that failed is measured, and is not the last success', async () => {
    const made = stage();
    made.metrics.syncEnded({ family: 'IPv4', kind: 'full', seconds: 1, succeeded: false });
    const found = await names(made);
    expect(found).toContain('sync_proxy_rules_duration_seconds');
    expect(found).not.toContain('sync_proxy_rules_last_timestamp_seconds');
  });

  test('a full restore that failed is no partial one', async () => {
    const made = stage();
    made.metrics.restoreFailed('IPv6');
    expect(await names(made)).not.toContain('sync_proxy_rules_iptables_partial_restore_failures_total');
  });
});

describe('packets counted in the kernel', () => {
  test.each([
    ['cannot be read', { invalidDropped: () => undefined }],
    ['does not exist', {}],
  ])('a counter that %s is not shown', async (_, packets) => {
    expect(await names(stage('iptables', { packets }))).toEqual(QUIET);
  });
});

test('the bounds of network programming', async () => {
  const { registry, metrics } = stage();
  metrics.networkProgrammed('IPv4', 42);
  const [family] = parseExposition(await registry.print());
  const bounds = family?.samples.flatMap(({ labels }) =>
    labels.filter(([name]) => name === 'le').map(([, le]) => le),
  );
  expect(bounds?.slice(0, 5)).toEqual(['0.25', '0.5', '1', '2', '3']);
  expect(bounds?.slice(59, 64)).toEqual(['58', '59', '60', '65', '70']);
  expect(bounds?.slice(-9)).toEqual(['115', '120', '150', '180', '210', '240', '270', '300', '+Inf']);
  expect(bounds).toHaveLength(81);
});
