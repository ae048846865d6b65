/** The nftables mode's part of a start: the netlink thread, and an eye on the node's addresses and on our table. */
import { BACKSTOP_TABLE, TABLE } from './rules/names.ts';
import { AddressWatch } from '../addressWatch.ts';
import { readConnections } from './counters.ts';
import { KUBE_PROXY_TABLE } from './cleanup.ts';
import { NetlinkNftClient } from './client.ts';
import { NftProxier } from './proxier.ts';
import { TableWatch } from './watch.ts';
import { NETLINK_NETFILTER } from '../../netlink/socket.ts';
import { NetlinkThread } from '../../netlink/thread.ts';
import type { Log } from '../../log/log.ts';
import { type Cidr, FAMILIES, type Family, familyOf } from '../../model/ip.ts';
import { type SyncRunner, NODE_ADDRESSES } from '../../proxy/syncRunner.ts';
import { isIpv6Enabled } from '../iptables/families.ts';
import { removeStaleRules } from '../iptables/staleObjects.ts';
import { StaleIpvs } from '../ipvs/staleObjects.ts';
import type { ModeOptions, ProxyMode } from '../mode.ts';
import { removeStaleTables } from './staleObjects.ts';
import { askForTables, nftPreflight } from '../prerequisites.ts';
import { Retries } from './retries.ts';

const OUR_TABLE = `table ${TABLE}`;

export async function openNftMode(options: ModeOptions): Promise<ProxyMode> {
  const { config, log } = options;
  const enabled = FAMILIES.filter((family) => family === 'IPv4' || isIpv6Enabled());
  const { families, leftOut, counters } = await nftPreflight(enabled, options);
  const hasBackstop = config.junction.nftablesBackstop;
  log.info(`kube-proxy running in ${families.length > 1 ? 'dual' : 'single'}-stack mode`, {
    families: families.join(','),
  });
  const thread = await NetlinkThread.start();
  const watch = await AddressWatch.start(thread);
  const tables = await TableWatch.start(thread);
  const proxies = new Map<Family, NftProxier>();
  const loops = new Map<Family, SyncRunner>();
  const waiting = new Set<Family>(families);
  let serviceCidrs: readonly Cidr[] = [];
  const staleIpvs = new StaleIpvs({ log, drainLimitMs: config.junction.ipvsDrainLimit });
  let removing = Promise.resolve();
  const retries = new Retries((family) => {
    proxies.get(family)?.prepareRetry();
    loops.get(family)?.request('again what the kernel did not take');
  });
  thread.onSocketLost(NETLINK_NETFILTER, () => {
    for (const [family, proxy] of proxies) {
      proxy.noteSocketLost();
      loops.get(family)?.request('the netlink socket was lost');
    }
  });
  return {
    name: 'nftables',
    families,
    leftOut,
    startable: enabled,
    ask: (family) => askForTables(family, options),
    backend: (family) => {
      const channel = thread.transactionChannel(NETLINK_NETFILTER);
      const proxy = new NftProxier({
        client: new NetlinkNftClient(family, channel),
        ...(hasBackstop && { backstop: new NetlinkNftClient(family, channel, BACKSTOP_TABLE) }),
        onBackstopFailure: ({ reason, isNews }) => {
          if (isNews) log.warn('Our table has no backstop for now', { ipFamily: family, reason });
        },
        again: (milliseconds) => retries.ask(family, milliseconds),
        masqueradeBit: config.nftables.masqueradeBit,
        counters: counters && config.junction.nftablesCounters,
        nodeIps: () => watch.nodeIps(family),
        serviceCidrs: () => serviceCidrs.filter((cidr) => familyOf(cidr) === family),
      });
      proxies.set(family, proxy);
      return proxy;
    },
    attach: (loop) => {
      const { family } = loop.proxier;
      loops.set(family, loop);
      tables.follow({
        family,
        onChange: (changedBy, news) => {
          if (news) proxies.get(family)?.noteForeign(news, family);
          else loop.proxier.requestFull();
          if (changedBy) loop.foreignChanges.noticed({ objects: news?.objects ?? [OUR_TABLE], changedBy });
          else loop.requestUrgently('notifications of the kernel were lost');
        },
      });
      watch.follow({ onNodeAddresses: () => loop.request(NODE_ADDRESSES) });
    },
    ready: (family) => {
      waiting.delete(family);
      if (waiting.size === 0) removing = removeStaleObjects(log, hasBackstop, staleIpvs);
    },
    isTold: true,
    connections: async () => {
      const channel = thread.channel(NETLINK_NETFILTER);
      const readings = [];
      for (const [family, { ruleset }] of proxies) {
        if (!loops.get(family)?.isStarted) continue;
        for (const each of await readConnections(channel, ruleset, family))
          readings.push({ ...each, family });
      }
      return readings;
    },
    setServiceCidrs: (cidrs) => {
      serviceCidrs = cidrs;
      for (const loop of loops.values()) loop.request('ServiceCIDRs changed');
    },
    localIps: (family) => watch.localIps(family),
    close: async () => {
      retries.close();
      await removing;
      await staleIpvs.close();
      await tables.close();
      await watch.close();
      await thread.close();
    },
  };
}

/** Rules go before the sets that they match. */
async function removeStaleObjects(log: Log, hasBackstop: boolean, staleIpvs: StaleIpvs): Promise<void> {
  await removeStaleTables(log, hasBackstop ? [KUBE_PROXY_TABLE] : [KUBE_PROXY_TABLE, BACKSTOP_TABLE]);
  await removeStaleRules(log);
  await staleIpvs.remove();
}
