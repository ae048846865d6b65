import { afterAll, describe, expect, test } from 'vitest';
import { ChangeTimer, JunctionMetrics } from '../../../src/telemetry/metrics/junctionMetrics.ts';
import {
  addBuildInfo,
  addFeatures,
  HealthcheckMetrics,
} from '../../../src/telemetry/metrics/componentMetrics.ts';
import { NoLocalEndpoints } from '../../../src/telemetry/metrics/proxyMetrics.ts';
import { processMetrics, RuntimeMetrics } from '../../../src/telemetry/metrics/processMetrics.ts';
import { Registry } from '../../../src/telemetry/metrics/instruments.ts';
import { Cluster } from '../../plan/cluster.ts';
import { parseExposition } from './parse.ts';

describe('how long a change took', () => {
  test('from its event by way of the plan to the kernel', () => {
    const timer = new ChangeTimer();
    timer.received(1000);
    timer.received(1400); // the first one waits longest
    timer.planned(1500);
    timer.received(1600); // for the next sync
    expect(timer.written(3500)).toEqual({ plan: 0.5, write: 2, total: 2.5 });
    timer.planned(3600);
    expect(timer.written(3600)).toEqual({ plan: 2, write: 0, total: 2 });
  });

  test('nothing waited', () => {
    const timer = new ChangeTimer();
    timer.planned(1);
    expect(timer.written(2)).toBeUndefined();
  });

  test('a write that failed does not start the clock again', () => {
    const timer = new ChangeTimer();
    timer.received(0);
    timer.planned(10);
    timer.received(20);
    timer.planned(1000);
    expect(timer.written(2000)).toEqual({ plan: 1, write: 1, total: 2 });
  });
});

describe('who wants endpoints here and has none', () => {
  const cluster = new Cluster();
  const counter = new NoLocalEndpoints();
  const tell = (...lines: readonly string[]): string => {
    cluster.tell(...lines);
    counter.apply(cluster.replan());
    const { servicePorts, services } = counter;
    return `${servicePorts.internal} ${servicePorts.external} of ${services.internal} ${services.external}`;
  };
  const REMOTE = 'a/in-1 of in 80 | 10.0.0.1 node-b';

  test.each([
    ['nobody', [], '0 0 of 0 0'],
    [
      'an ordinary service',
      ['a/any 10.96.0.1 80@30080', 'a/any-1 of any 80 | 10.0.0.1 node-b'],
      '0 0 of 0 0',
    ],
    ['inside, no endpoints at all', ['a/in 10.96.0.2 80 itp=Local'], '0 0 of 0 0'],
    ['inside, endpoints elsewhere', [REMOTE], '1 0 of 1 0'],
    ['inside, one here', [`${REMOTE} | 10.0.0.2 node-a`], '0 0 of 0 0'],
    ['inside, gone again', [REMOTE], '1 0 of 1 0'],
    [
      'outside, two ports',
      ['a/out 10.96.0.3 a:80@30081 b:81@30082 etp=Local', 'a/out-1 of out a:80 b:81 | 10.0.0.1 node-b'],
      '1 2 of 1 1',
    ],
    ['outside, drained elsewhere', ['a/out-1 of out a:80 b:81 | 10.0.0.1 node-b draining'], '1 2 of 1 1'],
    ['outside, not usable anywhere', ['a/out-1 of out a:80 b:81 | 10.0.0.1 node-b unready'], '1 0 of 1 0'],
    ['both deleted', ['- a/in', '- a/out'], '0 0 of 0 0'],
  ])('%s', (_, lines, expected) => expect(tell(...lines)).toBe(expected));
});

describe('health checks of the metrics port', () => {
  test('the last result and all of them, until reset', async () => {
    const checks = new HealthcheckMetrics();
    expect(await checks.print()).toBe('');
    checks.checked('ping', 'healthz', false);
    checks.checked('ping', 'healthz', true);
    checks.checked('ping', 'healthz', true);
    expect(await checks.print()).toBe(
      [
        '# HELP kubernetes_healthcheck [STABLE] This metric records the result of a single healthcheck.',
        '# TYPE kubernetes_healthcheck gauge',
        'kubernetes_healthcheck{name="ping",type="healthz"} 1',
        '# HELP kubernetes_healthchecks_total [STABLE] This metric records the results of all healthcheck.',
        '# TYPE kubernetes_healthchecks_total counter',
        'kubernetes_healthchecks_total{name="ping",status="error",type="healthz"} 1',
        'kubernetes_healthchecks_total{name="ping",status="success",type="healthz"} 2',
        '',
      ].join('\n'),
    );
    checks.reset();
    expect(await checks.print()).toBe('');
  });
});

describe('everything together', () => {
  const registry = new Registry();
  const runtime = new RuntimeMetrics();
  registry.add(processMetrics);
  registry.add(runtime);
  addBuildInfo(registry, {
    version: '1.2.3',
    commit: 'abc-dirty',
    date: 'unknown',
    kubernetesVersion: '1.36.4',
  });
  addFeatures(registry, [
    { name: 'ComponentFlagz', stage: 'BETA', enabled: true },
    { name: 'Old', stage: '', enabled: false },
  ]);
  const junction = new JunctionMetrics(registry);
  junction.table.junction_change_duration_seconds.observe({ ip_family: 'IPv4', stage: 'plan' }, 0.0002);
  afterAll(() => runtime.close());

  test('is text that Prometheus reads', async () => {
    const families = parseExposition(await registry.print());
    const value = (name: string): number | undefined =>
      families.flatMap(({ samples }) => samples).find((sample) => sample.name === name)?.value;
    expect(value('process_resident_memory_bytes')).toBeGreaterThan(1e6);
    expect(value('process_open_fds')).toBeGreaterThan(2);
    expect(value('process_start_time_seconds')).toBeGreaterThan(1.7e9);
    expect(value('process_cpu_seconds_total')).toBeGreaterThan(0);
    expect(value('nodejs_eventloop_lag_seconds')).toBeGreaterThanOrEqual(0);
    expect(value('process_network_receive_bytes_total')).toBeGreaterThan(0);
    expect(value('process_virtual_memory_max_bytes')).toBeGreaterThan(1e9);
    expect(value('go_goroutines')).toBeGreaterThanOrEqual(0);
    expect(value('kubernetes_build_info')).toBe(1);
    expect(await registry.print()).toContain(
      'git_commit="abc",git_tree_state="dirty",git_version="v1.36.4+junction-1.2.3",go_version="",major="1",minor="36"',
    );
    expect(await registry.print()).toContain(
      `junction_build_info{build_date="",commit="abc-dirty",node_version="${process.version}",version="1.2.3"} 1`,
    );
    expect(await registry.print()).toContain('kubernetes_feature_enabled{name="Old",stage=""} 0\n');
    expect(await registry.print()).toContain(
      'junction_change_duration_seconds_bucket{ip_family="IPv4",stage="plan",le="0.0001"} 0\n' +
        'junction_change_duration_seconds_bucket{ip_family="IPv4",stage="plan",le="0.0002"} 1\n',
    );
  });
});
