/**
 * A node that was switched from the IPVS mode: once the new rules work, what the old mode left goes. Service addresses
 * would otherwise stay addresses of this node for ever.
 */
import { setName } from '../backends/ipvs/sets.ts';
import { type IpvsRemains, findRemains, removeServers, removeSets } from '../kernel/ipvs/cleanup.ts';
import { findDevice } from '../kernel/ipvs/device.ts';
import type { IpvsChannels } from '../kernel/ipvs/door.ts';
import { listRequest } from '../kernel/netlink/ipsetList.ts';
import { NETLINK_GENERIC, NETLINK_NETFILTER, NETLINK_ROUTE } from '../kernel/netlink/socket.ts';
import type { Log } from '../log.ts';
import { FAMILIES } from '../model/ip.ts';
import { withNetlink } from './netlinkWork.ts';

/** Nothing that fails here may stop the proxy. */
export function removeIpvsLeftovers(log: Log): Promise<void> {
  return withNetlink(
    async (thread) => {
      const channels: IpvsChannels = {
        route: thread.channel(NETLINK_ROUTE),
        netfilter: thread.channel(NETLINK_NETFILTER),
        generic: thread.channel(NETLINK_GENERIC),
      };
      if (await isThereAny(channels)) await remove(channels, log);
    },
    (error) =>
      log.warn('Cannot look for what the ipvs mode left', { err: error, whatToDo: 'junction cleanup' }),
  );
}

/** Asked first, because the very question for virtual servers loads the module. */
async function isThereAny({ route, netfilter }: IpvsChannels): Promise<boolean> {
  if (await findDevice(route)) return true;
  const replies = await netfilter.dumpAll(
    FAMILIES.map((family) => listRequest(setName('clusterIP', family), 0)),
  );
  return replies.some(({ kind }) => kind === 'answered');
}

async function remove(channels: IpvsChannels, log: Log): Promise<void> {
  const remains: IpvsRemains[] = [];
  for (const family of FAMILIES) remains.push(await findRemains(channels, family));
  const failures = [...(await removeServers(channels, remains)), ...(await removeSets(channels, remains))];
  log.info('Removed what the ipvs mode left', {
    virtualServers: remains.reduce((sum, { servers }) => sum + servers.length, 0),
    addresses: remains.reduce((sum, { addresses }) => sum + addresses, 0),
    sets: remains.reduce((sum, { sets }) => sum + sets.length, 0),
  });
  for (const failure of failures) log.warn('Cannot remove what the ipvs mode left', { what: failure });
}
