/** The real IPVS proxy, in the network that this process is in. */
import { IptablesClient } from '../../../src/modes/iptables/client.ts';
import { NetlinkIpvsClient } from '../../../src/modes/ipvs/client.ts';
import { IpvsProxier } from '../../../src/modes/ipvs/proxier.ts';
import { applyIpvsSysctls } from '../../../src/modes/ipvs/settings.ts';
import { NETLINK_GENERIC, NETLINK_NETFILTER, NETLINK_ROUTE } from '../../../src/netlink/socket.ts';
import { NetlinkThread } from '../../../src/netlink/thread.ts';
import { createLog } from '../../../src/log/log.ts';
import { FAMILIES, isLoopback } from '../../../src/model/ip.ts';
import type { FamilyWriter } from '../../scenarios/scenarioProxies.ts';
import { node1Addresses } from '../../scenarios/scenario.ts';

export async function openIpvs(): Promise<readonly FamilyWriter[]> {
  const thread = await NetlinkThread.start();
  const channels = {
    route: thread.channel(NETLINK_ROUTE),
    netfilter: thread.channel(NETLINK_NETFILTER),
    generic: thread.channel(NETLINK_GENERIC),
  };
  applyIpvsSysctls({ strictARP: false }, createLog({ verbosity: 0, format: 'text' }));
  return Promise.all(
    FAMILIES.map(async (family): Promise<FamilyWriter> => {
      const lockPath = '/run/junction-xtables.lock';
      const iptables = await IptablesClient.open({ family, variant: 'legacy', lockPath });
      return {
        family,
        start: () =>
          new IpvsProxier({
            iptables,
            client: new NetlinkIpvsClient(family, channels),
            masqueradeBit: 14,
            scheduler: 'rr',
            excludeCIDRs: [],
            drainLimitMs: 0,
            nodeIps: () => node1Addresses(family).filter((ip) => !isLoopback(ip)),
            onDrainFailure: (error) => {
              throw error;
            },
          }),
      };
    }),
  );
}
