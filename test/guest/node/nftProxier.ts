/** The real nftables proxy, in the network that this process is in. */
import { NetlinkNftClient } from '../../../src/modes/nftables/client.ts';
import { NftProxier } from '../../../src/modes/nftables/proxier.ts';
import { NETLINK_NETFILTER } from '../../../src/netlink/socket.ts';
import { NetlinkThread } from '../../../src/netlink/thread.ts';
import { FAMILIES, isLoopback } from '../../../src/model/ip.ts';
import type { FamilyWriter } from '../../scenarios/scenarioProxies.ts';
import { node1Addresses } from '../../scenarios/scenario.ts';

export async function openNft(): Promise<readonly FamilyWriter[]> {
  const thread = await NetlinkThread.start();
  return FAMILIES.map((family) => ({
    family,
    start: () =>
      new NftProxier({
        client: new NetlinkNftClient(family, thread.transactionChannel(NETLINK_NETFILTER)),
        masqueradeBit: 14,
        counters: true,
        nodeIps: () => node1Addresses(family).filter((ip) => !isLoopback(ip)),
      }),
  }));
}
