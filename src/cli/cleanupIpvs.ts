/** The part of `junction cleanup` that the IPVS mode left: virtual servers, the device, and sets. */
import { findRemains, type IpvsRemains, removeServers, removeSets } from '../modes/ipvs/cleanup.ts';
import type { IpvsChannels } from '../modes/ipvs/client.ts';
import { directChannel } from '../netlink/channel.ts';
import { NETLINK_GENERIC, NETLINK_NETFILTER, NETLINK_ROUTE, NetlinkSocket } from '../netlink/socket.ts';
import type { Family } from '../model/ip.ts';
import { printTable } from './table.ts';

export interface IpvsCleanup {
  readonly remains: readonly IpvsRemains[];
  /** What the kernel would not let go of. */
  readonly failures: readonly string[];
}

/** Sets go after the rules that match them, so the rules are removed in between. */
export async function cleanupIpvs(
  families: readonly Family[],
  dryRun: boolean,
  removeRules: () => Promise<void>,
): Promise<IpvsCleanup> {
  const sockets = [NETLINK_ROUTE, NETLINK_NETFILTER, NETLINK_GENERIC].map((protocol) =>
    NetlinkSocket.open(protocol),
  );
  try {
    const [route, netfilter, generic] = sockets.map(directChannel);
    if (!route || !netfilter || !generic) throw new Error('no sockets');
    const channels: IpvsChannels = { route, netfilter, generic };
    const remains: IpvsRemains[] = [];
    for (const family of families) remains.push(await findRemains(channels, family));
    const failures = dryRun ? [] : [...(await removeServers(channels, remains))];
    await removeRules();
    if (!dryRun) failures.push(...(await removeSets(channels, remains)));
    return { remains, failures };
  } finally {
    for (const socket of sockets) socket.close();
  }
}

export function printIpvsCleanup({ remains, failures }: IpvsCleanup, dryRun: boolean): string {
  const rows = remains
    .filter(({ servers, addresses, sets }) => servers.length + addresses + sets.length > 0)
    .map(({ family, servers, addresses, sets }) => [
      family,
      String(servers.length),
      String(addresses),
      String(sets.length),
    ]);
  const kept = failures.map((failure) => `Could not remove ${failure}\n`).join('');
  if (rows.length === 0) return kept;
  const title = dryRun ? 'Would remove of IPVS:\n' : 'Removed of IPVS:\n';
  const header = ['FAMILY', 'VIRTUAL SERVERS', 'ADDRESSES ON KUBE-IPVS0', 'SETS'];
  return title + printTable(header, rows) + kept;
}
