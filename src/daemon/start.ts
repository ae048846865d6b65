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
import { FaultLog } from './faultLog.ts';
import { limitMemory } from './memory.ts';
import { type Mode, openMode } from '../modes/mode.ts';
import { servedFamilies } from '../modes/familyState.ts';
import { KubeProxyWatch } from './otherProxies.ts';
import { applyModeSysctls, type Postponed, prepareSystem, warnOfInconsistencies } from './preparation.ts';
import { openSource } from './source.ts';
import { EarlySource } from '../sources/earlySource.ts';
import { type CommandRunner, run } from '../system/processes.ts';

/** The exit code. */
export async function runDaemon(options: DaemonOptions): Promise<number> {
  const { config, nodeName, initOnly, log, supervision } = options;
  limitMemory();
  const faults = new FaultLog(log, systemClock);
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
  const opened = await openSource({ config, nodeName, log, registry, metrics: own });
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
    if (!isEnd(error, supervision.signal)) throw error;
    log.info('Stopped during the start; no rules were written');
    return 0;
  } finally {
    supervision.stopping();
    supervision.doing('closing the connections to the API server');
    await opened.close();
    faults.close();
  }
}

/** Whatever was under way when the signal came: a wait, or a program that was killed. */
function isEnd(error: unknown, { aborted, reason }: AbortSignal): boolean {
  return aborted && (error === reason || (error instanceof Error && error.name === 'AbortError'));
}

/** A pod that is being replaced has its grace period, and the next one may be there before it has ended. */
const LOCK_WAIT_MS = 15_000;

function lockNode({ config, nodeName, log, supervision }: DaemonOptions): Promise<InstanceLock> {
  const seconds = LOCK_WAIT_MS / 1000;
  const waits = 'Another Junction serves this network namespace; waiting for its end';
  const impostor = "Another user's process has taken the name of Junction's lock; going on without the lock";
  return takeInstanceLock({
    about: { mode: config.mode, node: nodeName },
    signal: supervision.signal,
    waitMs: LOCK_WAIT_MS,
    onWait: (holder) => log.warn(waits, { holder, seconds }),
    onImpostor: (holder) => log.warn(impostor, { holder }),
  });
}

type SourceParts = Pick<DaemonParts, 'opened' | 'registry' | 'own'>;

/** The source is asked before the mode opens: the API server answers while the mode has the thread. */
async function serve(options: DaemonOptions, parts: SourceParts): Promise<number> {
  const source = new EarlySource(parts.opened.source, systemClock);
  try {
    await parts.opened.asked();
    return await serveFrom(options, { ...parts, opened: { ...parts.opened, source } });
  } finally {
    await source.stop();
  }
}

async function serveFrom(options: DaemonOptions, parts: SourceParts): Promise<number> {
  const { config, log, supervision } = options;
  const { signal } = supervision;
  supervision.doing(`preparing the ${config.mode} mode`);
  const kubeProxies = new KubeProxyWatch(log);
  // Two questions by HTTP, before our own ports are open; the kernel is asked meanwhile.
  const watching = kubeProxies.start();
  log.info(`Using ${config.mode} Proxier`);
  let hasStarted = false;
  const runner = startRunner(signal, () => hasStarted);
  const mode = await openMode({ ...options, signal, runner });
  try {
    const postponed = await setUp(options, mode);
    await watching;
    hasStarted = true;
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

async function setUp(options: DaemonOptions, mode: Mode): Promise<Postponed> {
  warnOfInconsistencies(options, servedFamilies(mode.families));
  options.supervision.signal.throwIfAborted();
  const postponed = await prepareSystem(options, () => mode.guardLocalnet());
  await mode.applySettings();
  return postponed;
}

/**
 * `--init-only`: kernel settings, and no rules but the guard that route_localnet needs. A container without capabilities
 * may write settings (they belong to root); what needs more is left to the one that serves.
 */
async function initialize(options: DaemonOptions): Promise<number> {
  const { log, supervision } = options;
  const { signal } = supervision;
  if (hasCapability(readProcessStatus(), 'NET_ADMIN')) {
    const mode = await openMode({ ...options, signal, runner: startRunner(signal, () => false) });
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

/** For what tidies up after a program that was killed. */
const TIDYING_LIMIT_MS = 2000;

/**
 * Runs programs while Junction starts. SIGTERM must not wait for one that waits for the xtables lock: that one is killed,
 * which is safe, because iptables changes a table as a whole or not at all.
 */
function startRunner(signal: AbortSignal, hasStarted: () => boolean): CommandRunner {
  return async (argv, options = {}) => {
    // Once it has started, the signal is no concern of the programs that run.
    if (hasStarted()) return run(argv, options);
    if (!signal.aborted) return run(argv, { ...options, signal });
    // Its outcome does not matter any more: whoever asked is to end, and tidies up on the way.
    const timeoutMs = Math.min(options.timeoutMs ?? TIDYING_LIMIT_MS, TIDYING_LIMIT_MS);
    await run(argv, { ...options, timeoutMs }).catch(() => undefined);
    throw signal.reason;
  };
}
