/** What is done once, before anything is written: kernel settings, and a look at whether the configuration fits. */
import { consistencyWarnings, localhostRanges } from '../config/consistency.ts';
import type { ValidConfig } from '../config/effective.ts';
import { toSettings } from '../config/settings.ts';
import { isJunctionError, JunctionError } from '../errors.ts';
import type { Log } from '../log/log.ts';
import type { Family } from '../model/ip.ts';
import { ipvsSysctls } from '../modes/ipvs/settings.ts';
import { nodeView } from '../plan/view.ts';
import { applyConntrackSettings } from '../system/conntrackSysctls.ts';
import { applyOomScore, applySystemSettings, ensureSysctl } from '../system/sysctl.ts';

interface Preparation {
  readonly config: ValidConfig;
  readonly nodeName: string;
  readonly log: Log;
}

/** Kernel settings that have to wait for the first rules. */
export interface Postponed {
  /** The first rules bring conntrack's module. */
  readonly conntrack: boolean;
  /** The first rules bring the guard of 127.0.0.0/8. */
  readonly routeLocalnet: boolean;
}

/** Kernel settings. What cannot be set is logged, with what follows from it; the proxy works without. */
export async function prepareSystem(
  options: Preparation,
  guardLocalnet: () => Promise<void>,
): Promise<Postponed> {
  const { config, nodeName, log } = options;
  const conntrack = applyConntrack(options);
  const { nodePorts } = nodeView(toSettings(config, nodeName), undefined, 'IPv4');
  const isGuarded = !nodePorts.loopback || (await tryGuard(guardLocalnet, log));
  applySystem(options, ['IPv4', 'IPv6'], nodePorts.loopback && isGuarded);
  applyOomScore(config.oomScoreAdj, { log });
  return { conntrack, routeLocalnet: !isGuarded };
}

/** The first rules are in the kernel, and with them the guard. */
export function applyPostponed(options: Preparation, { conntrack, routeLocalnet }: Postponed): void {
  if (conntrack) applyConntrack(options);
  if (routeLocalnet) applySystem(options, ['IPv4'], true);
}

/** Returns whether conntrack's settings are not there yet: the first rules bring its module. */
function applyConntrack({ config, log }: Preparation): boolean {
  return applyConntrackSettings(config.conntrack, { log, root: config.junction.sysctlRoot }).some(
    (outcome) => outcome.state === 'failed' && outcome.error.code === 'SYSCTL_MISSING',
  );
}

/** Without the guard, route_localnet would let neighbours reach what listens on 127.0.0.1 until the first rules. */
async function tryGuard(guardLocalnet: () => Promise<void>, log: Log): Promise<boolean> {
  try {
    await guardLocalnet();
    return true;
  } catch (error) {
    if (error instanceof Error && error.name === 'AbortError') throw error; // a signal during the start
    log.warn('Cannot write the guard of 127.0.0.0/8; setting route_localnet after the first rules', {
      err: error,
    });
    return false;
  }
}

function applySystem(
  { config, log }: Preparation,
  families: readonly Family[],
  localhostNodePorts: boolean,
): void {
  const root = config.junction.sysctlRoot;
  const { changes, warnings } = applySystemSettings({ families, localhostNodePorts, root });
  if (changes.some(({ name }) => name.endsWith('route_localnet')))
    log.info(
      'Setting route_localnet=1 to allow node-ports on localhost; to change this either disable iptables.localhostNodePorts (--iptables-localhost-nodeports) or set nodePortAddresses (--nodeport-addresses) to filter loopback addresses',
    );
  for (const { message, remedy } of warnings) log.warn(message, { whatToDo: remedy });
}

/** The mode's own, as far as they are there already: those of IPVS come with its module. */
export function applyModeSysctls({ config, log }: Preparation): void {
  if (config.mode !== 'ipvs') return;
  for (const [name, value] of ipvsSysctls(config.ipvs)) {
    try {
      const { changed, previous } = ensureSysctl(name, value, { root: config.junction.sysctlRoot });
      if (changed) log.info('Set sysctl', { name, value, previous });
    } catch (error) {
      if (!isJunctionError(error)) throw error;
      log.info('Sysctl not set; the main container sets it', { name, value, why: error });
    }
  }
}

export function warnOfInconsistencies({ config, log }: Preparation, families: readonly Family[]): void {
  const primary = families[0] ?? 'IPv4';
  const facts = { primaryFamily: primary, dualStack: families.length > 1, podCIDRs: [] };
  for (const { message, fatal } of consistencyWarnings(config, facts)) {
    if (fatal) throw new JunctionError('CONFIG_INCONSISTENT', message);
    log.warn('Kube-proxy configuration may be incomplete or incorrect', { err: message });
  }
  logLocalhostRanges(config, log);
}

export function logLocalhostRanges(config: ValidConfig, log: Log): void {
  for (const range of localhostRanges(config))
    log.error('--nodeport-addresses includes localhost but localhost NodePorts are not supported', { range });
}
