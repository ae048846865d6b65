/** Which address families this machine can serve, and the doors to their iptables. */
import { existsSync } from 'node:fs';
import { JunctionError } from '../errors.ts';
import { IptablesDoor } from '../kernel/iptables/door.ts';
import type { CommandRunner, ProcessObserver } from '../kernel/process.ts';
import { readSysctl } from '../kernel/sysctl.ts';
import type { Log } from '../log.ts';
import { FAMILIES, type Family } from '../model/ip.ts';

export async function openDoors(
  variant: 'auto' | 'nft' | 'legacy',
  log: Log,
  runner: CommandRunner,
  programs?: ProcessObserver,
): Promise<readonly IptablesDoor[]> {
  const doors: IptablesDoor[] = [];
  for (const family of FAMILIES) {
    if (family === 'IPv6' && !isIpv6Enabled()) {
      log.info('No IPv6 on this machine: serving IPv4 only');
      continue;
    }
    const door = await IptablesDoor.open({ family, variant, runner, programs });
    if (await door.works()) {
      doors.push(door);
      const { version, reason } = door;
      log.info('Using iptables', { ipFamily: family, version, variant: door.variant, reason });
    } else {
      log.warn('This family is left out: its nat table does not work', { ipFamily: family });
    }
  }
  if (doors.length === 0) {
    throw new JunctionError(
      'IPTABLES_FAILED',
      'iptables is not available on this host: no family has a working nat table',
      {
        hint: 'Run as root, in the network namespace of the node; `iptables -t nat -S POSTROUTING` shows what the kernel says.',
      },
    );
  }
  log.info(`kube-proxy running in ${doors.length > 1 ? 'dual' : 'single'}-stack mode`, {
    families: doors.map(({ family }) => family).join(','),
  });
  return doors;
}

export function doorOf(doors: readonly IptablesDoor[], family: Family): IptablesDoor {
  const door = doors.find((other) => other.family === family);
  if (!door) throw new JunctionError('IPTABLES_FAILED', `iptables does not work for ${family}`);
  return door;
}

export function isIpv6Enabled(): boolean {
  if (!existsSync('/proc/net/if_inet6')) return false;
  return readSysctl('net/ipv6/conf/all/disable_ipv6') !== '1';
}
