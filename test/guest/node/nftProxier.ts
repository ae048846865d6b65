/** The real nftables proxy, in the network that this process is in. */
import { NftReader } from '../../../src/modes/nftables/inspect.ts';
import { NetlinkSource } from '../../../src/modes/nftables/kernel/source.ts';
import { printFound } from '../../../src/modes/nftables/kernel/values.ts';
import { NetlinkNftTables } from '../../../src/modes/nftables/client.ts';
import type { NftSync } from '../../../src/modes/nftables/sync.ts';
import { NFT_FAMILY } from '../../../src/modes/nftables/rules/print.ts';
import { NETLINK_NETFILTER } from '../../../src/netlink/socket.ts';
import { NetlinkSockets } from '../../../src/netlink/sockets.ts';
import { FAMILIES, type Family } from '../../../src/model/ip.ts';
import { Faults, faultyNft } from '../../contract/faults.ts';
import { nftMode } from '../../contract/modes.ts';
import { node1Addresses } from '../../scenarios/scenario.ts';
import type { FamilyWriter } from '../../scenarios/scenarioProxies.ts';

/** `isProtected`: no other program can change the table. */
export async function openNft(isProtected: boolean): Promise<readonly FamilyWriter[]> {
  const sockets = new NetlinkSockets();
  const channel = sockets.channel(NETLINK_NETFILTER);
  return FAMILIES.map((family): FamilyWriter => {
    const start = (faults = new Faults()): NftSync =>
      nftMode(faultyNft(new NetlinkNftTables(family, channel), faults), () => node1Addresses(family), {
        isProtected,
      });
    let proxier = start();
    const source = new NetlinkSource(family, channel);
    const kernel = new NftReader({
      family,
      source,
      facts: () => proxier.facts,
    });
    return {
      family,
      kernel,
      counters: () => countersOf(source, family, proxier),
      start: (faults) => (proxier = start(faults)),
    };
  });
}

async function countersOf(
  source: NetlinkSource,
  family: Family,
  sync: NftSync,
): Promise<ReadonlyMap<string, number>> {
  const place = { family: NFT_FAMILY[family], table: (await sync.settled())?.name ?? '' };
  const counted = new Map<string, number>();
  for (const set of (await source.table(place))?.sets ?? [])
    for (const element of await source.allElements({ ...place, set: set.name }))
      if (element.counter) counted.set(printFound({ set, element }), Number(element.counter.packets));
  return counted;
}
