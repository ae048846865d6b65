/** What a family counts and measures, from events and syncs to the page that Prometheus reads. */
import { describe, expect, test } from 'vitest';
import { FamilyTelemetry } from '../../../src/proxy/telemetry.ts';
import type { SyncAttempt } from '../../../src/proxy/report.ts';
import { HealthState } from '../../../src/telemetry/http/health.ts';
import { Registry } from '../../../src/telemetry/metrics/instruments.ts';
import { JunctionMetrics } from '../../../src/telemetry/metrics/junctionMetrics.ts';
import { registerProxyMetrics } from '../../../src/telemetry/metrics/proxyMetrics.ts';
import { slice } from '../../plan/given.ts';
import { type Run, Stage } from '../../proxy/stage.ts';
import { FakeClock } from '../../time/fakeClock.ts';
import { everythingOf, MODES } from './everything.ts';
import { parseExposition } from './parse.ts';

type ModeName = (typeof MODES)[number];

interface Metered extends Stage {
  /** `name{label=value} 7`, without buckets and the prefix of kube-proxy; of those whose name matches. */
  readonly samples: (name: RegExp) => Promise<readonly string[]>;
}

function metered(mode: ModeName, runs: readonly Run[] = [], startAt = 0): Metered {
  const registry = new Registry();
  const clock = new FakeClock();
  const telemetry = new FamilyTelemetry({
    family: 'IPv4',
    mode,
    metrics: registerProxyMetrics(registry, mode),
    own: new JunctionMetrics(registry),
    health: new HealthState({ syncPeriodMs: 30_000, now: () => ({ wallNs: 0n, steadyNs: 0n }) }),
    clock,
    wallTime: () => startAt + clock.now(),
  });
  const samples: Metered['samples'] = async (wanted) =>
    parseExposition(await registry.print())
      .flatMap((family) => family.samples)
      .filter(({ name }) => wanted.test(name) && !name.endsWith('_bucket'))
      .map(({ name, labels, value }) => {
        const pairs = labels.flatMap(([label, text]) => (label === 'ip_family' ? [] : `${label}=${text}`));
        const suffix = pairs.length > 0 ? `{${pairs.join()}}` : '';
        return `${name.replace(/^kubeproxy_(?:sync_proxy_rules_)?/, '')}${suffix} ${value}`;
      });
  return Object.assign(new Stage({ clock, runs, telemetry }), { samples });
}

test('changes are pending until a sync takes them, and timed to the kernel', async () => {
  const stage = metered('nftables', [{ ms: 2000 }], 1_800_000_000_000);
  stage.runner.request();
  // Half of the rest after the first write.
  await stage.pass(2.5);
  stage.tell('a/web 10.96.0.1 80');
  const pending = slice('a/web-1 of web 80 | 10.0.0.1');
  stage.proxy.onEndpointSlice('a/web-1', { ...pending, triggerTime: 1_800_000_002_000 });
  expect(await stage.samples(/changes/)).toEqual([
    'endpoint_changes_pending 1',
    'endpoint_changes_total 1',
    'service_changes_pending 1',
    'service_changes_total 1',
  ]);
  // During the next write: it waits for its end, and for the rest.
  await stage.pass(1);
  expect(await stage.samples(/pending/)).toEqual(['endpoint_changes_pending 0', 'service_changes_pending 0']);
  stage.tell('a/db 10.96.0.2 80');
  await stage.pass(10);
  expect(await stage.samples(/junction_change_duration_seconds_sum/)).toEqual([
    'junction_change_duration_seconds_sum{stage=plan} 3',
    'junction_change_duration_seconds_sum{stage=total} 9',
    'junction_change_duration_seconds_sum{stage=write} 6',
  ]);
  expect(await stage.samples(/network_programming_duration_seconds_sum/)).toEqual([
    'network_programming_duration_seconds_sum 3',
  ]);
  expect(await stage.samples(/last.*timestamp/)).toEqual([
    'last_queued_timestamp_seconds 1800000003.5',
    'last_timestamp_seconds 1800000008',
  ]);
});

const FAILS: Run = { report: new Error('lock') };
const refusing = (...ids: readonly string[]): Run => ({
  report: { refused: new Map(ids.map((id) => [id, new Error('EINVAL')])) },
});
const counting = (counts: Readonly<Record<string, number>>): Run => ({ report: { counts } });

describe('a sync that failed is counted', () => {
  test.each<[ModeName, string, Run, SyncAttempt, readonly string[]]>([
    ['nftables', 'by its mode', FAILS, 'partial', ['nftables_sync_failures_total 1']],
    [
      'nftables',
      'also where it left some out',
      refusing('a/b', 'c/d'),
      'full',
      ['nftables_sync_failures_total 1'],
    ],
    [
      'nftables',
      'apart, where something could not be removed',
      counting({ 'cleanup.failures': 1 }),
      'partial',
      ['nftables_cleanup_failures_total 1'],
    ],
    [
      'iptables',
      'where the kernel refused what changed',
      counting({ 'restore.refusals': 1, 'partial.failures': 1 }),
      'full',
      ['iptables_partial_restore_failures_total 1', 'iptables_restore_failures_total 1'],
    ],
    ['iptables', 'where it never got there', FAILS, 'partial', ['iptables_partial_restore_failures_total 1']],
    ['iptables', 'not as partial where it was none', FAILS, 'full', []],
    ['iptables', 'not by the words of nftables', refusing('a/b'), 'full', []],
    ['ipvs', 'not by the words of nftables', FAILS, 'full', []],
  ])('%s: %s', async (mode, _, run, attempt, expected) => {
    const stage = metered(mode, [run]);
    stage.writer.attempt = attempt;
    stage.runner.request();
    await stage.pass(1);
    expect(await stage.samples(/kubeproxy.*failures_total/)).toEqual(expected);
  });

  test('and measured as what it set out to be; it is not the last success', async () => {
    const stage = metered('nftables', [FAILS, {}]);
    stage.writer.attempt = 'partial';
    stage.runner.request();
    await stage.pass(1);
    const counts = (): Promise<readonly string[]> => stage.samples(/proxy_rules_duration_seconds_count/);
    expect(await counts()).toEqual([
      'sync_partial_proxy_rules_duration_seconds_count 1',
      'duration_seconds_count 1',
    ]);
    expect(await stage.samples(/last_timestamp/)).toEqual([]);
    await stage.pass(60);
    expect(await stage.samples(/last_timestamp/)).toHaveLength(1);
  });
});

describe('who wants endpoints here and has none', () => {
  const REMOTE = 'a/in-1 of in 80 | 10.0.0.1 node-b';
  const OUT = 'a/out 10.96.0.3 a:80@30081 b:81@30082 etp=Local';

  test.each([
    [
      'an ordinary service',
      ['a/any 10.96.0.1 80@30080', 'a/any-1 of any 80 | 10.0.0.1 node-b'],
      '0 0',
      '0 0',
    ],
    ['inside, endpoints elsewhere', ['a/in 10.96.0.2 80 itp=Local', REMOTE], '0 1', '0 1'],
    ['outside, two ports', [OUT, 'a/out-1 of out a:80 b:81 | 10.0.0.1 node-b'], '2 0', '1 0'],
  ])('%s', async (_, lines, ports, services) => {
    for (const [mode, expected] of [
      ['iptables', ports],
      ['ipvs', services],
    ] as const) {
      const stage = metered(mode);
      // Somebody else, who stays.
      stage.tell(OUT.replace('a/out', 'z/out').replace('10.96.0.3', '10.96.0.9').replace(/@\d+/g, ''));
      stage.tell(...lines);
      await stage.pass(5);
      const values = (await stage.samples(/no_local_endpoints/)).map((line) => line.split(' ')[1]);
      expect(values.join(' ')).toBe(expected);
      // All of it is taken back.
      stage.tell(...lines.flatMap((line) => (line.includes(' of ') ? [] : `- ${line.split(' ')[0]}`)));
      await stage.pass(5);
      const left = (await stage.samples(/no_local_endpoints/)).map((line) => line.split(' ')[1]);
      expect(left.join(' ')).toBe('0 0');
    }
  });
});

test('what each mode has besides what all of them have', async () => {
  const names = new Map<ModeName, readonly string[]>();
  for (const mode of MODES)
    names.set(
      mode,
      (await everythingOf(mode)).map(({ name }) => name).filter((name) => name.startsWith('kubeproxy_')),
    );
  const shared = (name: string): boolean => MODES.every((mode) => names.get(mode)?.includes(name));
  const own = MODES.map(
    (mode) =>
      `${mode}: ${names
        .get(mode)
        ?.filter((name) => !shared(name))
        .join(' ')}`,
  );
  expect(own).toMatchInlineSnapshot(`
    [
      "iptables: kubeproxy_iptables_ct_state_invalid_dropped_packets_total kubeproxy_iptables_localhost_nodeports_accepted_packets_total kubeproxy_sync_full_proxy_rules_duration_seconds kubeproxy_sync_partial_proxy_rules_duration_seconds kubeproxy_sync_proxy_rules_iptables_last kubeproxy_sync_proxy_rules_iptables_partial_restore_failures_total kubeproxy_sync_proxy_rules_iptables_restore_failures_total kubeproxy_sync_proxy_rules_iptables_total",
      "ipvs: kubeproxy_sync_proxy_rules_iptables_restore_failures_total",
      "nftables: kubeproxy_sync_full_proxy_rules_duration_seconds kubeproxy_sync_partial_proxy_rules_duration_seconds kubeproxy_sync_proxy_rules_nftables_cleanup_failures_total kubeproxy_sync_proxy_rules_nftables_sync_failures_total",
    ]
  `);
});

test('a counter of packets that cannot be read, or is not there, is not shown', async () => {
  for (const packets of [{ invalidDropped: () => undefined }, {}]) {
    const registry = new Registry();
    registerProxyMetrics(registry, 'iptables', packets);
    expect(await registry.print()).not.toContain('packets_total');
  }
});
