/** Every metric that a daemon can show in a mode, each with at least one sample. */
import { FakeClock } from '../../time/fakeClock.ts';
import { addBuildInfo, addFeatures } from '../../../src/telemetry/metrics/componentMetrics.ts';
import { Connections } from '../../../src/telemetry/metrics/connections.ts';
import { faultMetrics, JunctionMetrics } from '../../../src/telemetry/metrics/junctionMetrics.ts';
import { processMetrics, RuntimeMetrics } from '../../../src/telemetry/metrics/processMetrics.ts';
import { registerProxyMetrics } from '../../../src/telemetry/metrics/proxyMetrics.ts';
import { Counter, Gauge, Histogram, Registry } from '../../../src/telemetry/metrics/instruments.ts';
import { RestClientMetrics } from '../../../src/telemetry/metrics/restClientMetrics.ts';
import { type ParsedFamily, parseExposition } from './parse.ts';

export const MODES = ['iptables', 'ipvs', 'nftables'] as const;

export async function everythingOf(mode: (typeof MODES)[number]): Promise<readonly ParsedFamily[]> {
  const registry = new Registry();
  const runtime = new RuntimeMetrics();
  registry.add(processMetrics);
  registry.add(runtime);
  registry.add(faultMetrics);
  addBuildInfo(registry, { version: '1.2.3', commit: 'abc', date: 'today', kubernetesVersion: '1.36.4' });
  addFeatures(registry, [{ name: 'ComponentFlagz', stage: 'BETA', enabled: true }]);
  if (mode === 'nftables')
    registry.add(new Connections({ read: async () => [CONNECTION], clock: new FakeClock() }));
  useRestClient(new RestClientMetrics(registry));
  useJunction(new JunctionMetrics(registry));
  const packets = { invalidDropped: () => 1n, localhostNodePorts: () => 2n };
  useEach(registerProxyMetrics(registry, mode, packets));
  try {
    return parseExposition(await registry.print());
  } finally {
    runtime.close();
  }
}

const CONNECTION = {
  family: 'IPv4',
  servicePort: 'shop/web:http',
  protocol: 'TCP',
  endpoint: '10.0.0.1:80',
  element: 'e',
  connections: 3,
  isCountedElsewhere: false,
};

function useRestClient(metrics: RestClientMetrics): void {
  const request = { method: 'GET', host: 'api:6443', code: '200' };
  metrics.requested({ ...request, isRetry: true, limitedMs: 1, sentBytes: 1 });
  metrics.answered({ ...request, durationMs: 1, receivedBytes: 1 });
  metrics.transportCreated();
  metrics.pluginCalled({ kind: 'ran', code: 0 });
  metrics.pluginCertificate(undefined);
}

function useJunction(metrics: JunctionMetrics): void {
  useEach(metrics.table);
  metrics.foreignChange('IPv4', 'nft');
  metrics.resourceUp('services', true);
  metrics.resourceFailed('services', 'busy');
}

/** One sample of each metric of a table, with all labels that any of them has. */
export function useEach(metrics: object): void {
  const labels = {
    ip_family: 'IPv4',
    table: 'nat',
    traffic_policy: 'internal',
    code: '200',
    stage: 'plan',
    kind: 'full',
    resource: 'services',
    reason: 'busy',
    program: 'nft',
    cause: 'killed',
    result: 'agrees',
    mode: 'iptables',
  };
  for (const metric of Object.values(metrics) as unknown[]) {
    if (metric instanceof Counter) metric.add(labels);
    if (metric instanceof Gauge) metric.set(labels, 1);
    if (metric instanceof Histogram) metric.observe(labels, 1);
  }
}
