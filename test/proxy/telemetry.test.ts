/** What a family's proxy tells, as metrics. */
import { describe, expect, test } from 'vitest';
import { FamilyTelemetry } from '../../src/proxy/telemetry.ts';
import type { Timestamp } from '../../src/telemetry/http/timestamp.ts';
import { HealthState } from '../../src/telemetry/http/health.ts';
import { JunctionMetrics } from '../../src/telemetry/metrics/junctionMetrics.ts';
import { registerProxyMetrics } from '../../src/telemetry/metrics/proxyMetrics.ts';
import { Registry } from '../../src/telemetry/metrics/instruments.ts';
import type { SyncOutcome } from '../../src/proxy/proxier.ts';
import { systemClock } from '../../src/time/systemClock.ts';
import { parseExposition } from '../telemetry/metrics/parse.ts';

type ModeName = 'iptables' | 'ipvs' | 'nftables';

function outcome(refused: readonly string[], isUnclean = false): SyncOutcome {
  return {
    changes: [],
    planMs: 0,
    triggers: [],
    report: {
      kind: 'full',
      commits: 1,
      objects: 0,
      refused: new Map(refused.map((id) => [id, new Error('EINVAL')])),
      repaired: [],
      retryAfterMs: undefined,
      counts: { ...(isUnclean && { 'cleanup.failures': 1 }) },
    },
  };
}

function stage(mode: ModeName) {
  const registry = new Registry();
  const now = (): Timestamp => ({ wallNs: 0n, steadyNs: 0n });
  const telemetry = new FamilyTelemetry({
    family: 'IPv4',
    mode,
    metrics: registerProxyMetrics(registry, mode),
    own: new JunctionMetrics(registry),
    health: new HealthState({ syncPeriodMs: 1000, now }),
    clock: systemClock,
    wallTime: () => 0,
  });
  const failures = async (): Promise<readonly string[]> =>
    parseExposition(await registry.print())
      .filter(({ name }) => /(nftables|iptables)_.*failures_total$/.test(name))
      .flatMap(({ name, samples }) => samples.map(({ value }) => `${name} ${value}`));
  const counts = async (histogram: string): Promise<readonly number[]> =>
    parseExposition(await registry.print())
      .flatMap(({ samples }) => samples)
      .filter(({ name }) => name === `${histogram}_count`)
      .map(({ value }) => value);
  const names = async (): Promise<readonly string[]> =>
    parseExposition(await registry.print()).map(({ name }) => name.replace('kubeproxy_', ''));
  return { telemetry, failures, counts, names };
}

describe('failed syncs', () => {
  test('of the nftables mode are counted as such', async () => {
    const { telemetry, failures } = stage('nftables');
    telemetry.failed(new Error('EINVAL'), 0.1, 'partial');
    expect(await failures()).toEqual(['kubeproxy_sync_proxy_rules_nftables_sync_failures_total 1']);
  });

  test('a sync that left somebody out is one too', async () => {
    const { telemetry, failures } = stage('nftables');
    telemetry.synced(outcome([]), 0.1);
    expect(await failures()).toEqual([]);
    telemetry.synced(outcome(['shop/web:http', 'shop/dns:dns']), 0.1);
    expect(await failures()).toEqual(['kubeproxy_sync_proxy_rules_nftables_sync_failures_total 1']);
  });

  const PARTIAL = 'kubeproxy_sync_proxy_rules_iptables_partial_restore_failures_total';

  test('a sync of what changed that the kernel refused, and one that never got there', async () => {
    const { telemetry, failures } = stage('iptables');
    const { report, ...rest } = outcome([]);
    telemetry.synced(
      { ...rest, report: { ...report, counts: { 'restore.refusals': 1, 'partial.failures': 1 } } },
      0.1,
    );
    expect(await failures()).toEqual([
      `${PARTIAL} 1`,
      'kubeproxy_sync_proxy_rules_iptables_restore_failures_total 1',
    ]);
    telemetry.failed(new Error('the lock is held'), 0.1, 'partial');
    expect(await failures()).toContain(`${PARTIAL} 2`);
    telemetry.failed(new Error('the lock is held'), 0.1, 'full');
    expect(await failures()).toContain(`${PARTIAL} 2`);
  });

  test('how long a failed sync took is counted as what it set out to be', async () => {
    const { telemetry, counts } = stage('nftables');
    telemetry.failed(new Error('ENOBUFS'), 0.1, 'partial');
    expect(await counts('kubeproxy_sync_partial_proxy_rules_duration_seconds')).toEqual([1]);
    expect(await counts('kubeproxy_sync_full_proxy_rules_duration_seconds')).toEqual([]);
  });

  test('a failed sync is measured, and is not the last success', async () => {
    const { telemetry, names } = stage('iptables');
    telemetry.failed(new Error('refused'), 1, 'full');
    expect(await names()).toContain('sync_proxy_rules_duration_seconds');
    expect(await names()).not.toContain('sync_proxy_rules_last_timestamp_seconds');
    expect(await names()).not.toContain('sync_proxy_rules_iptables_partial_restore_failures_total');
    telemetry.synced(outcome([]), 1);
    expect(await names()).toContain('sync_proxy_rules_last_timestamp_seconds');
  });

  test('what could not be removed is counted apart', async () => {
    const { telemetry, failures } = stage('nftables');
    telemetry.synced(outcome([], true), 0.1);
    expect(await failures()).toEqual(['kubeproxy_sync_proxy_rules_nftables_cleanup_failures_total 1']);
  });

  test.each(['iptables', 'ipvs'] as const)('the mode %s does not speak of nftables', async (mode) => {
    const { telemetry, failures } = stage(mode);
    telemetry.failed(new Error('something else'), 0.1, 'full');
    telemetry.synced(outcome(['shop/web:http']), 0.1);
    expect(await failures()).toEqual([]);
  });
});
