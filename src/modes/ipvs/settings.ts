/** What IPVS itself is set to, once at the start. */
import { release } from 'node:os';
import type { ValidConfig } from '../../config/effective.ts';
import type { Log } from '../../log/log.ts';
import type { NetlinkChannel } from '../../netlink/channel.ts';
import { setTimeouts } from '../../netlink/ipvs.ts';
import { ensureSysctl, type SysctlOptions } from '../../system/sysctl.ts';

interface IpvsSysctls {
  readonly strictARP: boolean;
  /** Of the kernel: `6.1.0-13-amd64`. */
  readonly kernel?: string;
}

/** A setting that cannot be made is fatal: without it connections would be lost or go astray. */
export function applyIpvsSysctls(settings: IpvsSysctls, log: Log, options: SysctlOptions = {}): void {
  for (const [name, value] of ipvsSysctls(settings)) {
    const { changed, previous } = ensureSysctl(name, value, options);
    if (changed) log.info('Set sysctl', { name, value, previous });
  }
}

export function ipvsSysctls({
  strictARP,
  kernel = release(),
}: IpvsSysctls): readonly (readonly [name: string, value: number])[] {
  return [
    ['net/ipv4/vs/conntrack', 1],
    ['net/ipv4/vs/expire_nodest_conn', 1],
    ['net/ipv4/vs/expire_quiescent_template', 1],
    ...(reusesBadly(kernel) ? [['net/ipv4/vs/conn_reuse_mode', 0] as const] : []),
    ['net/ipv4/ip_forward', 1],
    ...(strictARP
      ? ([
          ['net/ipv4/conf/all/arp_ignore', 1],
          ['net/ipv4/conf/all/arp_announce', 2],
        ] as const)
      : []),
  ];
}

/** From 4.1 to 5.8 a reused client port costs a second unless the setting is 0; before, it is not there. */
function reusesBadly(kernel: string): boolean {
  const [major = 0, minor = 0] = kernel.split('.').map((part) => Number.parseInt(part, 10));
  const version = major * 1000 + minor;
  return version >= 4001 && version < 5009;
}

/** 0 leaves a time-out as it is. Failing is no reason not to serve. */
export async function applyTimeouts(
  generic: NetlinkChannel,
  ipvs: number,
  milliseconds: Pick<ValidConfig['ipvs'], 'tcpTimeout' | 'tcpFinTimeout' | 'udpTimeout'>,
  log: Log,
): Promise<void> {
  const { tcpTimeout, tcpFinTimeout, udpTimeout } = milliseconds;
  const [tcp = 0, tcpFin = 0, udp = 0] = [tcpTimeout, tcpFinTimeout, udpTimeout].map((each) =>
    Math.floor(each / 1000),
  );
  if (tcp + tcpFin + udp === 0) return;
  const [outcome] = await generic.apply([setTimeouts(ipvs, { tcp, tcpFin, udp })]);
  const err = outcome?.state === 'refused' ? outcome.name : 'no answer';
  if (outcome?.state !== 'done') log.error('Cannot set the time-outs of IPVS', { err });
}
