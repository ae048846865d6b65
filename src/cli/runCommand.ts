/** `junction run`: the daemon. When it ends it leaves the rules in place, so that a restart loses no packet. */
import { existsSync } from 'node:fs';
import { LAYOUTS } from '../backends/iptables/layouts/index.ts';
import { JunctionError } from '../errors.ts';
import { CanaryMonitor } from '../kernel/iptables/canary.ts';
import { IptablesDoor } from '../kernel/iptables/door.ts';
import { IptablesProxy } from '../kernel/iptables/iptablesProxy.ts';
import { readNftGeneration } from '../kernel/netlink/nftGeneration.ts';
import { ensureSysctl, readSysctl } from '../kernel/sysctl.ts';
import { createLog, type Log } from '../log.ts';
import { nodeView } from '../plan/view.ts';
import { FamilyLoop } from '../proxy/familyLoop.ts';
import { FamilyProxy, type SyncOutcome } from '../proxy/familyProxy.ts';
import { Proxy } from '../proxy/proxy.ts';
import { ManifestSource } from '../sources/manifests/index.ts';
import { systemClock } from '../sync/systemClock.ts';
import { VERSION } from '../version.ts';
import type { Settings } from './settings.ts';

/** Runs until the signal; then ends what is under way. */
export async function runCommand(settings: Settings, signal: AbortSignal): Promise<number> {
  const log = createLog({ verbosity: settings.verbosity, format: settings.loggingFormat });
  log.info('Starting Junction', {
    version: VERSION,
    node: settings.nodeName,
    mode: 'iptables',
    layout: settings.layout,
  });
  const doors = await openDoors(settings, log);
  allowLocalhostNodePorts(settings, doors, log);

  const loops = doors.map((door) => makeLoop(settings, door, log));
  const proxy = new Proxy({ nodeName: settings.nodeName, loops, log });
  const source = new ManifestSource(settings.manifests);
  const guards = doors.flatMap((door, index) => {
    const loop = loops[index];
    return loop ? [makeGuard(settings, door, loop, log)] : [];
  });

  proxy.start();
  await source.start(proxy);
  for (const guard of guards) guard.start();
  await aborted(signal);

  log.info('Stopping; the rules stay in place');
  await source.stop();
  await Promise.all(guards.map((guard) => guard.stop()));
  await proxy.stop();
  return 0;
}

async function openDoors(settings: Settings, log: Log): Promise<readonly IptablesDoor[]> {
  const doors: IptablesDoor[] = [];
  for (const family of settings.families) {
    if (family === 'IPv6' && !isIpv6Enabled()) {
      log.info('No IPv6 on this machine: serving IPv4 only');
      continue;
    }
    const door = await IptablesDoor.open({ family, variant: settings.variant });
    if (await door.works()) {
      doors.push(door);
      log.info('Using iptables', {
        ipFamily: family,
        version: door.version,
        variant: door.variant,
        reason: door.reason,
      });
    } else {
      log.warn('This family is left out: its nat table does not work', { ipFamily: family });
    }
  }
  if (doors.length === 0) {
    throw new JunctionError(
      'IPTABLES_FAILED',
      'iptables is not available on this host: no family has a working nat table',
    );
  }
  return doors;
}

function isIpv6Enabled(): boolean {
  if (!existsSync('/proc/net/if_inet6')) return false;
  return readSysctl('net/ipv6/conf/all/disable_ipv6') !== '1';
}

/** Packets to 127.0.0.1 that are sent on to a pod are martians, unless the kernel is told otherwise. */
function allowLocalhostNodePorts(settings: Settings, doors: readonly IptablesDoor[], log: Log): void {
  const inForce = doors.some(
    ({ family }) => family === 'IPv4' && nodeView(settings, undefined, family).nodePorts.loopback,
  );
  if (!inForce) return;
  const { changed } = ensureSysctl('net/ipv4/conf/all/route_localnet', 1);
  if (!changed) return;
  log.info(
    'Setting route_localnet=1 to allow node-ports on localhost; to change this either disable iptables.localhostNodePorts (--iptables-localhost-nodeports) or set nodePortAddresses (--nodeport-addresses) to filter loopback addresses',
  );
}

function makeLoop(settings: Settings, door: IptablesDoor, log: Log): FamilyLoop {
  const backend = new IptablesProxy({
    door,
    layout: LAYOUTS[settings.layout],
    masqueradeBit: settings.masqueradeBit,
  });
  const proxy = new FamilyProxy({ family: door.family, settings, backend });
  let isFirst = true;
  return new FamilyLoop({
    proxy,
    log,
    clock: systemClock,
    minSyncPeriodMs: settings.minSyncPeriodMs,
    syncPeriodMs: settings.syncPeriodMs,
    ...(door.variant === 'nft' && { fingerprint: readNftGeneration }),
    onSynced: (outcome) => {
      if (isFirst) logReady(log, settings, proxy, outcome);
      isFirst = false;
    },
  });
}

function logReady(
  log: Log,
  settings: Settings,
  { family, plan }: FamilyProxy,
  { report }: SyncOutcome,
): void {
  log.info('Serving', {
    ipFamily: family,
    servicePorts: plan.servicePorts.size,
    endpoints: plan.endpointCount,
    chainsWritten: report.chains,
    rulesWritten: report.rules,
  });
  if (plan.view.podDetector.kind !== 'none') return;
  log.info('Pods cannot be told from other sources, so traffic to cluster IPs is not masqueraded', {
    ipFamily: family,
    why:
      settings.detectLocal.mode === 'NodeCIDR'
        ? `no Node ${settings.nodeName} with spec.podCIDRs of this family is known`
        : '--cluster-cidr has no CIDR of this family',
  });
}

interface Guard {
  start(): void;
  stop(): Promise<void>;
}

/** Notices that somebody has been at our rules: all of them at once by the canary, a few by reading them back. */
function makeGuard(settings: Settings, door: IptablesDoor, loop: FamilyLoop, log: Log): Guard {
  const canary = new CanaryMonitor({
    door,
    intervalMs: settings.syncPeriodMs,
    onFlushed: () => loop.requestFull(),
    onEvent: (event) =>
      log.info(event.message, { ipFamily: door.family, ...('error' in event && { err: event.error }) }),
  });
  let timer: NodeJS.Timeout | undefined;
  return {
    start: () => {
      canary.start();
      timer = setInterval(() => loop.verify(), settings.syncPeriodMs);
    },
    stop: () => {
      clearInterval(timer);
      return canary.stop();
    },
  };
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
