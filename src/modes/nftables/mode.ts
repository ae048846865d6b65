/** The nftables mode: netlink, and a watch over the node's addresses and our table. */
import { BACKSTOP_TABLE, TABLE } from './rules/names.ts';
import { AddressWatch } from '../addressWatch.ts';
import { readConnections } from './counters.ts';
import { KUBE_PROXY_TABLE, removeStaleTables } from './cleanup.ts';
import { NetlinkNftClient } from './client.ts';
import { NftReader } from './inspect.ts';
import { NetlinkSource } from './kernel/netlinkSource.ts';
import { outInterfaceNow } from '../outInterface.ts';
import { NftProxier } from './proxier.ts';
import { TableWatch } from './watch.ts';
import { ConntrackTable } from '../../netlink/conntrack.ts';
import { NETLINK_NETFILTER } from '../../netlink/socket.ts';
import { NetlinkThread } from '../../netlink/thread.ts';
import type { Log } from '../../log/log.ts';
import { FAMILIES, type Family, familyOf } from '../../model/ip.ts';
import type { FamilyEvents } from '../../proxy/foreignChanges.ts';
import { NODE_ADDRESSES } from '../../proxy/syncRunner.ts';
import { servedFamilies } from '../familyState.ts';
import { StaleObjects } from '../staleObjects.ts';
import { isIpv6Enabled, logStack } from '../iptables/families.ts';
import { removeStaleRules } from '../iptables/cleanup.ts';
import { StaleIpvs } from '../ipvs/cleanup.ts';
import type { Mode, ModeOptions } from '../mode.ts';
import { askForTables, nftPreflight } from '../prerequisites.ts';

const OUR_TABLE = `table ${TABLE}`;

export async function openNftMode(options: ModeOptions): Promise<Mode> {
  const { config, log } = options;
  const enabled = FAMILIES.filter((family) => family === 'IPv4' || isIpv6Enabled());
  const families = await nftPreflight(enabled, options);
  const hasBackstop = config.junction.nftablesBackstop;
  logStack(families, log);
  const thread = await NetlinkThread.start();
  const addresses = await AddressWatch.start(thread);
  const tables = await TableWatch.start(thread);
  const staleIpvs = new StaleIpvs({ log, drainLimitMs: config.junction.ipvsDrainLimit });
  const stale = new StaleObjects(servedFamilies(families), () =>
    removeStaleObjects(log, hasBackstop, staleIpvs),
  );
  const opened: { readonly family: Family; readonly proxier: NftProxier; readonly events: FamilyEvents }[] =
    [];
  thread.onSocketLost(NETLINK_NETFILTER, () => {
    for (const { proxier, events } of opened) {
      proxier.noteSocketLost();
      events.request('the netlink socket was lost');
    }
  });
  return {
    name: 'nftables',
    families,
    guardLocalnet: () => Promise.resolve(),
    applySettings: () => Promise.resolve(),
    open: (family, events) => {
      const channel = thread.transactionChannel(NETLINK_NETFILTER);
      const proxier = new NftProxier({
        client: new NetlinkNftClient(family, channel),
        ...(hasBackstop && { backstop: new NetlinkNftClient(family, channel, BACKSTOP_TABLE) }),
        onBackstopFailure: ({ reason, isNewReason }) => {
          if (isNewReason) log.warn('Our table has no backstop for now', { ipFamily: family, reason });
        },
        masqueradeBit: config.nftables.masqueradeBit,
        counters: config.junction.nftablesCounters,
        nodeIps: () => addresses.nodeIps(family),
      });
      opened.push({ family, proxier, events });
      tables.subscribe({
        family,
        onChange: (changedBy, changes) => {
          // Some notifications were lost, perhaps with the thread: nobody knows whether they were about our table, and the
          // backstop is deleted with the socket that made it.
          if (!changedBy) {
            proxier.requestBackstop();
            return events.notificationsLost();
          }
          if (changes) proxier.noteForeign(changes, family);
          else proxier.requestFull();
          events.foreignChange({ objects: changes?.objects ?? [OUR_TABLE], changedBy });
        },
      });
      addresses.subscribe({ onNodeAddresses: () => events.request(NODE_ADDRESSES) });
      return {
        writer: proxier,
        verification: { isNotified: true },
        kernel: new NftReader({
          family,
          source: new NetlinkSource(family, channel),
          facts: () => proxier.facts,
          outInterface: outInterfaceNow,
        }),
        flows: new ConntrackTable(family, channel),
        localIps: () => addresses.localIps(family),
        ready: () => stale.ready(family),
        setServiceCidrs: (cidrs) => {
          proxier.setServiceCidrs(cidrs.filter((cidr) => familyOf(cidr) === family));
          events.request('ServiceCIDRs changed');
        },
      };
    },
    probe: (family) => askForTables(family, options),
    connections: async () => {
      const channel = thread.channel(NETLINK_NETFILTER);
      const readings = [];
      for (const { family, proxier } of opened)
        readings.push(await readConnections(channel, proxier.table.ruleset, family));
      return readings.flat();
    },
    close: async () => {
      await stale.close();
      await staleIpvs.close();
      await tables.close();
      await addresses.close();
      await thread.close();
    },
  };
}

/** Rules are deleted before the sets that they match. */
async function removeStaleObjects(log: Log, hasBackstop: boolean, staleIpvs: StaleIpvs): Promise<void> {
  await removeStaleTables(log, hasBackstop ? [KUBE_PROXY_TABLE] : [KUBE_PROXY_TABLE, BACKSTOP_TABLE]);
  await removeStaleRules(log);
  await staleIpvs.remove();
}
