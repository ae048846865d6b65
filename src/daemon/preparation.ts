/** What is done once, before anything is written: kernel settings, and a look at whether the configuration fits. */
import { consistencyWarnings, localhostRanges, toSettings, type ValidConfig } from '../config/index.ts';
import { isJunctionError, JunctionError } from '../errors.ts';
import { applyConntrackSettings } from '../kernel/conntrackSysctls.ts';
import { ipvsSysctls } from '../kernel/ipvs/settings.ts';
import { applyOomScore } from '../kernel/oomScore.ts';
import { ensureSysctl } from '../kernel/sysctl.ts';
import { applySystemSettings } from '../kernel/systemSettings.ts';
import type { Log } from '../log.ts';
import type { Family } from '../model/ip.ts';
import { nodeView } from '../plan/view.ts';

export interface Preparation {
  readonly config: ValidConfig;
  readonly nodeName: string;
  readonly log: Log;
}

/** Answers whether conntrack's settings are not there yet: the first rules bring its module. */
export function applyConntrack({ config, log }: Preparation): boolean {
  const { conntrack } = config;
  const outcomes = applyConntrackSettings(
    {
      maxPerCore: conntrack.maxPerCore,
      min: conntrack.min,
      tcpEstablishedTimeoutMs: conntrack.tcpEstablishedTimeout,
      tcpCloseWaitTimeoutMs: conntrack.tcpCloseWaitTimeout,
      tcpBeLiberal: conntrack.tcpBeLiberal,
      udpTimeoutMs: conntrack.udpTimeout,
      udpStreamTimeoutMs: conntrack.udpStreamTimeout,
    },
    { log, root: config.junction.sysctlRoot },
  );
  return outcomes.some(
    ({ state, ...rest }) => state === 'failed' && 'error' in rest && isMissing(rest.error),
  );
}

function isMissing(error: unknown): boolean {
  return isJunctionError(error, 'SYSCTL_MISSING');
}

/** Kernel settings. What cannot be set is told, with what follows from it; the proxy works without. */
export function prepareSystem(options: Preparation): boolean {
  const { config, nodeName, log } = options;
  const conntrackIsMissing = applyConntrack(options);
  const { nodePorts } = nodeView(toSettings(config, nodeName), undefined, 'IPv4');
  const { changes, warnings } = applySystemSettings({
    families: ['IPv4', 'IPv6'],
    localhostNodePorts: nodePorts.loopback,
    root: config.junction.sysctlRoot,
  });
  if (changes.some(({ name }) => name.endsWith('route_localnet'))) {
    log.info(
      'Setting route_localnet=1 to allow node-ports on localhost; to change this either disable iptables.localhostNodePorts (--iptables-localhost-nodeports) or set nodePortAddresses (--nodeport-addresses) to filter loopback addresses',
    );
  }
  for (const { message, remedy } of warnings) log.warn(message, { whatToDo: remedy });
  applyOomScore(config.oomScoreAdj, { log });
  return conntrackIsMissing;
}

/** The mode's own, as far as they are there already: those of IPVS come with its module. */
export function applyModeSysctls({ config, log }: Preparation): void {
  if (config.mode !== 'ipvs') return;
  const { strictARP } = config.ipvs;
  for (const [name, value] of ipvsSysctls({ strictARP })) {
    try {
      const { changed, previous } = ensureSysctl(name, value, { root: config.junction.sysctlRoot });
      if (changed) log.info('Set sysctl', { name, value, previous });
    } catch (error) {
      if (!isJunctionError(error)) throw error;
      log.info('Left to the container that serves', { name, value, why: error });
    }
  }
}

export function warnOfInconsistencies({ config, log }: Preparation, families: readonly Family[]): void {
  const facts = {
    primaryFamily: families[0] ?? 'IPv4',
    dualStack: families.length > 1,
    podCIDRs: [],
  } as const;
  for (const { message, fatal } of consistencyWarnings(config, facts)) {
    if (fatal) throw new JunctionError('CONFIG_INCONSISTENT', message);
    log.warn('Kube-proxy configuration may be incomplete or incorrect', { err: message });
  }
  tellOfLocalhost(config, log);
}

export function tellOfLocalhost(config: ValidConfig, log: Log): void {
  for (const range of localhostRanges(config)) {
    log.error('--nodeport-addresses includes localhost but localhost NodePorts are not supported', { range });
  }
}
