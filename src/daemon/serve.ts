/** What a start does when it has configuration, credentials and lock: opens the mode, prepares the node, and serves. */
import { hasCapability, readProcessStatus } from '../modes/prerequisites/check.ts';
import { servedFamilies } from '../modes/staleObjects.ts';
import { type Mode, openMode } from '../modes/mode.ts';
import { type CommandRunner, run } from '../system/processes.ts';
import { Daemon, type DaemonOptions, type DaemonParts } from './daemon.ts';
import { applyModeSysctls, type Postponed, prepareSystem, warnOfInconsistencies } from './preparation.ts';

type SourceParts = Pick<DaemonParts, 'opened' | 'registry' | 'own'>;

export async function serveFrom(options: DaemonOptions, parts: SourceParts): Promise<number> {
  const { config, log, supervision } = options;
  const { signal } = supervision;
  supervision.doing(`preparing the ${config.mode} mode`);
  log.info(`Using ${config.mode} Proxier`);
  let hasStarted = false;
  const runner = startRunner(signal, () => hasStarted);
  const mode = await openMode({ ...options, signal, runner });
  try {
    const postponed = await setUp(options, mode);
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
export async function initialize(options: DaemonOptions): Promise<number> {
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
