/** The HTTP servers: health, and metrics with everything else for operators. */
import { toV1alpha1, type ValidConfig } from '../config/effective.ts';
import type { Log } from '../log/log.ts';
import { HealthServer, type HealthState } from '../telemetry/http/health.ts';
import { type MetricsPageOptions, MetricsServer } from '../telemetry/http/metricsServer.ts';
import type { BindOptions, BoundServer } from '../telemetry/http/server.ts';
import { systemTimestamps } from '../telemetry/http/timestamp.ts';
import type { Registry } from '../telemetry/metrics/instruments.ts';
import type { ProxyMetrics } from '../telemetry/metrics/proxyMetrics.ts';
import { systemClock } from '../time/systemClock.ts';
import { VERSION } from '../version.ts';

interface ServerOptions {
  readonly config: () => ValidConfig;
  readonly flags: MetricsPageOptions['flags'];
  readonly registry: Registry;
  readonly metrics: ProxyMetrics;
  readonly health: HealthState;
  readonly log: Log;
  /** With bindAddressHardFail: an address that cannot be had ends the process. */
  readonly onHardFail: (which: 'healthz' | 'metrics', error: Error) => void;
}

/** None for an empty address. */
export function makeServers(options: ServerOptions): readonly BoundServer[] {
  const { config, flags, registry, metrics, health, log, onHardFail } = options;
  const { healthzBindAddress, metricsBindAddress, bindAddressHardFail, mode, enableProfiling } = config();
  const bind = (address: string, which: 'healthz' | 'metrics'): BindOptions => ({
    address,
    log,
    clock: systemClock,
    ...(bindAddressHardFail && { onHardFail: (error: Error) => onHardFail(which, error) }),
  });
  const startedAt = new Date();
  const servers: BoundServer[] = [];
  if (healthzBindAddress !== '') {
    const counter = (probe: 'healthz' | 'livez', code: string): void =>
      metrics[`proxy_${probe}_total`].add({ code });
    const binding = bind(healthzBindAddress, 'healthz');
    servers.push(new HealthServer({ ...binding, state: health, now: systemTimestamps, counter }));
  }
  if (metricsBindAddress !== '')
    servers.push(
      new MetricsServer({
        ...bind(metricsBindAddress, 'metrics'),
        mode,
        metrics: () => registry.print(),
        configz: () => toV1alpha1(config()),
        flags,
        status: () => ({ startedAt, now: new Date(), version: VERSION }),
        ...(enableProfiling && { debug: { setVerbosity: (level: number) => log.setVerbosity(level) } }),
      }),
    );
  return servers;
}
