/** Every metric that Junction can show, by name: from the tables in src/telemetry/metrics, as a daemon registers them. */
import { MODE_NAMES, type ModeName } from '../../src/model/mode.ts';
import { addBuildInfo, addFeatures } from '../../src/telemetry/metrics/componentMetrics.ts';
import { Connections } from '../../src/telemetry/metrics/connections.ts';
import type { MetricType } from '../../src/telemetry/metrics/exposition.ts';
import { Registry } from '../../src/telemetry/metrics/instruments.ts';
import { faultMetrics, JunctionMetrics } from '../../src/telemetry/metrics/junctionMetrics.ts';
import { processMetrics, RuntimeMetrics } from '../../src/telemetry/metrics/processMetrics.ts';
import { registerProxyMetrics } from '../../src/telemetry/metrics/proxyMetrics.ts';
import { RestClientMetrics } from '../../src/telemetry/metrics/restClientMetrics.ts';
import { systemClock } from '../../src/time/systemClock.ts';

export interface Metric {
  readonly name: string;
  readonly type: MetricType;
  readonly labels: ReadonlySet<string>;
  /** `undefined`: another program's. */
  readonly modes: ReadonlySet<ModeName> | undefined;
}

export type Catalogue = ReadonlyMap<string, Metric>;

/** Labels that a target has, whatever it shows: by Prometheus, its operator, and the relabelings of our PodMonitor. */
export const TARGET_LABELS: ReadonlySet<string> = new Set([
  'cluster',
  'container',
  'instance',
  'job',
  'namespace',
  'node',
  'pod',
]);

/** What queries may ask for besides, each with whose it is. */
const OTHERS: Readonly<Record<string, readonly string[]>> = {
  // Prometheus: of every target.
  up: [],
  // Prometheus: alerts that are pending or fire.
  ALERTS: ['alertname', 'alertstate'],
  // cAdvisor in kubelet: what the memory limit is compared with; what the kernel keeps for rules is part of it.
  container_memory_working_set_bytes: [],
  container_spec_memory_limit_bytes: [],
};

export async function readCatalogue(): Promise<Catalogue> {
  const metrics = new Map<string, Metric>();
  for (const [name, labels] of Object.entries(OTHERS))
    metrics.set(name, { name, type: 'gauge', labels: new Set(labels), modes: undefined });
  for (const mode of MODE_NAMES) {
    for (const { name, type, labelNames } of await familiesOf(mode)) {
      const modes = new Set([...(metrics.get(name)?.modes ?? []), mode]);
      metrics.set(name, { name, type, labels: new Set(labelNames), modes });
    }
  }
  return metrics;
}

const TABLES: readonly ((registry: Registry) => unknown)[] = [
  (registry) => new JunctionMetrics(registry),
  (registry) => new RestClientMetrics(registry),
];

async function familiesOf(mode: ModeName): ReturnType<Registry['collect']> {
  const registry = new Registry();
  const runtime = new RuntimeMetrics();
  for (const collector of [processMetrics, runtime, faultMetrics]) registry.add(collector);
  for (const registerIn of TABLES) registerIn(registry);
  addBuildInfo(registry, { version: '0', commit: '0', date: '0', kubernetesVersion: '0.0.0' });
  addFeatures(registry, []);
  if (mode !== 'iptables') registry.add(new Connections({ read: async () => [], clock: systemClock }));
  registerProxyMetrics(registry, mode, { invalidDropped: () => 0n, localhostNodePorts: () => 0n });
  try {
    return await registry.collect();
  } finally {
    runtime.close();
  }
}
