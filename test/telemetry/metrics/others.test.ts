import { afterAll, describe, expect, test } from 'vitest';
import { JunctionMetrics } from '../../../src/telemetry/metrics/junctionMetrics.ts';
import { addBuildInfo, addFeatures } from '../../../src/telemetry/metrics/componentMetrics.ts';
import { processMetrics, RuntimeMetrics } from '../../../src/telemetry/metrics/processMetrics.ts';
import { Registry } from '../../../src/telemetry/metrics/instruments.ts';
import { parseExposition } from './parse.ts';

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
