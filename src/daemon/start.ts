/**
 * A start, in an order that changes nothing in the kernel before it is known to be of use: configuration and credentials
 * first, then the lock that keeps a second Junction away, then the mode, then kernel settings, then rules.
 */
import { onFault } from '../faults.ts';
import { requireNetAdmin } from '../modes/prerequisites/check.ts';
import { type InstanceLock, takeInstanceLock } from '../system/instanceLock.ts';
import { JunctionMetrics } from '../telemetry/metrics/junctionMetrics.ts';
import { Registry } from '../telemetry/metrics/instruments.ts';
import { VERSION } from '../version.ts';
import type { DaemonOptions } from './daemon.ts';
import { limitInlining } from './compiler.ts';
import { limitMemory } from './memory.ts';
import { initialize, serveFrom } from './serve.ts';
import { openSource } from './source.ts';

/** The exit code. */
export async function runDaemon(options: DaemonOptions): Promise<number> {
  const { config, nodeName, initOnly, log, supervision } = options;
  limitMemory();
  limitInlining();
  const endFaults = onFault((fault, detail) => {
    if (fault.startsWith('netlink_')) log.verbose(2, 'Netlink messages are lost', { fault, detail });
  });
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
      return await serveFrom(options, { opened, registry, own });
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
    endFaults();
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
