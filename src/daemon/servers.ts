/** The HTTP servers: health, and metrics with everything else for operators. */
import { toV1alpha1, type ValidConfig } from '../config/effective.ts';
import type { BindOptions } from '../telemetry/http/server.ts';
import { HealthServer, type HealthState } from '../telemetry/http/health.ts';
import { type MetricsPageOptions, MetricsServer } from '../telemetry/http/metricsServer.ts';
import { systemTimestamps } from '../telemetry/http/timestamp.ts';
import type { Log } from '../log/log.ts';
import type { ProxyMetrics } from '../telemetry/metrics/proxyMetrics.ts';
import type { Registry } from '../telemetry/metrics/instruments.ts';
import { systemClock } from '../time/systemClock.ts';
import { VERSION } from '../version.ts';

export interface ServerOptions {
  readonly config: () => ValidConfig;
  readonly flags: MetricsPageOptions['flags'];
  readonly registry: Registry;
  readonly metrics: ProxyMetrics;
  readonly health: HealthState;
  readonly log: Log;
  readonly startedAt: Date;
  /** With bindAddressHardFail: an address that cannot be had ends the process. */
  readonly onHardFail: (which: 'healthz' | 'metrics', error: Error) => void;
}

interface RunningServer {
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** None for an empty address. */
export function makeServers(options: ServerOptions): readonly RunningServer[] {
  const { healthzBindAddress, metricsBindAddress } = options.config();
  return [
    ...(healthzBindAddress === '' ? [] : [healthServer(options, healthzBindAddress)]),
    ...(metricsBindAddress === '' ? [] : [metricsServer(options, metricsBindAddress)]),
  ];
}

function bindOptions(
  { config, log, onHardFail }: ServerOptions,
  address: string,
  which: 'healthz' | 'metrics',
): BindOptions {
  return {
    address,
    log,
    clock: systemClock,
    ...(config().bindAddressHardFail && { onHardFail: (error: Error) => onHardFail(which, error) }),
  };
}

function healthServer(options: ServerOptions, address: string): RunningServer {
  const { health, metrics } = options;
  return new HealthServer({
    ...bindOptions(options, address, 'healthz'),
    state: health,
    now: systemTimestamps,
    counter: (probe, code) => metrics[`proxy_${probe}_total`].add({ code }),
  });
}

function metricsServer(options: ServerOptions, address: string): RunningServer {
  const { config, flags, registry, log, startedAt } = options;
  return new MetricsServer({
    ...bindOptions(options, address, 'metrics'),
    mode: config().mode,
    metrics: () => registry.print(),
    configz: () => toV1alpha1(config()),
    flags,
    status: () => ({ startedAt, now: new Date(), version: VERSION }),
    ...(config().enableProfiling && { debug: { setVerbosity: (level: number) => log.setVerbosity(level) } }),
  });
}
