/**
 * A start, in an order that changes nothing in the kernel before it is known to be of use: configuration and credentials
 * first, then the lock that keeps a second Junction away, then the mode, then kernel settings, then rules.
 */
import { hasCapability, readProcessStatus, requireNetAdmin } from '../modes/prerequisites/capabilities.ts';
import { type InstanceLock, takeInstanceLock } from '../system/instanceLock.ts';
import { JunctionMetrics } from '../telemetry/metrics/junctionMetrics.ts';
import { Registry } from '../telemetry/metrics/instruments.ts';
import { systemClock } from '../time/systemClock.ts';
import { VERSION } from '../version.ts';
import { Daemon, type DaemonOptions, type DaemonParts } from './daemon.ts';
import { logFaults } from './faultLog.ts';
import { keepGarbageYoung } from './heap.ts';
import { openMode, type ProxyMode } from '../modes/mode.ts';
import { KubeProxyWatch } from './otherProxies.ts';
import { applyModeSysctls, type Postponed, prepareSystem, warnOfInconsistencies } from './preparation.ts';
import { openSource } from './source.ts';
import { StartRunner } from './startRunner.ts';

/** The exit code. */
export async function runDaemon(options: DaemonOptions): Promise<number> {
  const { config, nodeName, initOnly, log, signal, supervision } = options;
  keepGarbageYoung();
  const endFaultLog = logFaults(log, systemClock);
  log.info('Version info', { version: `v${VERSION}`, node: process.version });
  log.info('Starting Junction', {
    version: VERSION,
    node: nodeName,
    mode: config.mode,
    layout: config.junction.iptablesLayout,
  });
  const registry = new Registry();
  const own = new JunctionMetrics(registry);
  supervision.doing('reading the credentials for the API server, or the manifests');
  const opened = await openSource({ config, nodeName, log, clock: systemClock, registry, metrics: own });
  try {
    if (initOnly) return await initialize(options);
    requireNetAdmin();
    supervision.doing('waiting for the lock of this network namespace');
    const lock = await lockNode(options);
    try {
      return await serve(options, { opened, registry, own });
    } finally {
      await lock.release();
    }
  } catch (error) {
    if (!isEnd(error, signal)) throw error;
    log.info('Stopped during the start; no rules were written');
    return 0;
  } finally {
    supervision.stopping();
    supervision.doing('closing the connections to the API server');
    await opened.close();
    endFaultLog();
  }
}

/** Whatever was under way when the signal came: a wait, or a program that was killed. */
function isEnd(error: unknown, signal: AbortSignal): boolean {
  return (
    signal.aborted && (error === signal.reason || (error instanceof Error && error.name === 'AbortError'))
  );
}

/** A pod that is being replaced has its grace period, and the next one may be there before it has ended. */
const LOCK_WAIT_MS = 15_000;

function lockNode({ config, nodeName, log, signal }: DaemonOptions): Promise<InstanceLock> {
  return takeInstanceLock({
    about: { mode: config.mode, node: nodeName },
    signal,
    waitMs: LOCK_WAIT_MS,
    onWait: (holder) =>
      log.warn('Another Junction serves this network namespace; waiting for its end', {
        holder,
        seconds: LOCK_WAIT_MS / 1000,
      }),
    onImpostor: (holder) =>
      log.warn("Another user's process has taken the name of Junction's lock; going on without the lock", {
        holder,
      }),
  });
}

async function serve(
  options: DaemonOptions,
  parts: Pick<DaemonParts, 'opened' | 'registry' | 'own'>,
): Promise<number> {
  const { config, log, signal, supervision } = options;
  supervision.doing(`preparing the ${config.mode} mode`);
  const kubeProxies = new KubeProxyWatch(log);
  await kubeProxies.start();
  log.info(`Using ${config.mode} Proxier`);
  const runner = new StartRunner(signal);
  const mode = await openMode({ ...options, runner: runner.run });
  try {
    const postponed = await setUp(options, mode);
    runner.started();
    const daemon = new Daemon(options, { ...parts, mode, postponed });
    try {
      return await daemon.run();
    } finally {
      supervision.stopping();
      await daemon.stop();
    }
  } finally {
    supervision.doing(`closing the ${config.mode} mode`);
    kubeProxies.stop();
    await mode.close();
  }
}

async function setUp(options: DaemonOptions, mode: ProxyMode): Promise<Postponed> {
  warnOfInconsistencies(options, mode.families);
  options.signal.throwIfAborted();
  const postponed = await prepareSystem(options, mode.guardLocalnet);
  await mode.applySettings?.();
  return postponed;
}

/**
 * `--init-only`: kernel settings, and no rules but the guard that route_localnet needs. A container without capabilities
 * may write settings (they belong to root); what needs more is left to the one that serves.
 */
async function initialize(options: DaemonOptions): Promise<number> {
  const { log, signal } = options;
  if (hasCapability(readProcessStatus(), 'NET_ADMIN')) {
    const mode = await openMode({ ...options, runner: new StartRunner(signal).run });
    try {
      await setUp(options, mode);
    } finally {
      await mode.close();
    }
  } else {
    log.info('Without the capability NET_ADMIN: kernel settings only, no look at what the mode needs');
    await prepareSystem(options, () => Promise.reject(new Error('without the capability NET_ADMIN')));
    applyModeSysctls(options);
  }
  log.info('System initialized and --init-only specified');
  return 0;
}
