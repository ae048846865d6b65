/** The IPVS mode's part of a start: kernel settings, the netlink thread, and an eye on addresses and the device. */
import { toSettings } from '../../config/index.ts';
import { CHAINS } from '../iptables/rules/names.ts';
import type { IptablesClient } from '../iptables/client.ts';
import { NetlinkIpvsClient } from './client.ts';
import { IpvsProxier } from './proxier.ts';
import { findNumbers } from './numbers.ts';
import { applyIpvsSysctls, applyTimeouts } from './settings.ts';
import { AddressWatch } from '../addressWatch.ts';
import { NETLINK_GENERIC, NETLINK_NETFILTER, NETLINK_ROUTE } from '../../netlink/socket.ts';
import { NetlinkThread } from '../../netlink/thread.ts';
import type { Log } from '../../log/log.ts';
import { type Family, parseCidr } from '../../model/ip.ts';
import { NODE_ADDRESSES } from '../../proxy/syncRunner.ts';
import { clientOf, openFamilies } from '../iptables/families.ts';
import type { ModeOptions, ProxyMode } from '../mode.ts';
import { removeStaleTables } from '../nftables/staleObjects.ts';
import { askAgain, preflight } from '../prerequisites.ts';

export async function openIpvsMode(options: ModeOptions): Promise<ProxyMode> {
  const { config, nodeName, log } = options;
  const { ipvs } = config;
  const { clients, served: families, leftOut } = await openFamilies(options);
  await preflight('ipvs', clients, families, options);
  const thread = await NetlinkThread.start();
  const channels = {
    route: thread.channel(NETLINK_ROUTE),
    netfilter: thread.channel(NETLINK_NETFILTER),
    generic: thread.channel(NETLINK_GENERIC),
  };
  const numbers = await findNumbers(channels, 'IPv4');
  const watch = await AddressWatch.start(thread);
  const proxies = new Map<Family, IpvsProxier>();
  const waiting = new Set<Family>(families);
  let removing = Promise.resolve();
  return {
    name: 'ipvs',
    families,
    leftOut,
    startable: clients.map(({ family }) => family),
    ask: (family) => askAgain('ipvs', clients, family, options),
    applySettings: async () => {
      applyIpvsSysctls({ strictARP: ipvs.strictARP }, log, { root: config.junction.sysctlRoot });
      await applyTimeouts(channels.generic, numbers.ipvs, timeoutsOf(config), log);
    },
    backend: (family) => {
      const proxy = new IpvsProxier({
        iptables: clientOf(clients, family),
        client: new NetlinkIpvsClient(family, channels),
        masqueradeBit: config.iptables.masqueradeBit,
        scheduler: toSettings(config, nodeName).scheduler,
        excludeCIDRs: (ipvs.excludeCIDRs ?? []).flatMap((text) => parseCidr(text) ?? []),
        drainLimitMs: config.junction.ipvsDrainLimit,
        nodeIps: () => watch.nodeIps(family),
        onDrainFailure: (error) =>
          log.error('Cannot look at drained endpoints', { ipFamily: family, err: error }),
      });
      proxies.set(family, proxy);
      return proxy;
    },
    attach: (loop) => {
      const { family } = loop.proxier;
      watch.follow({
        family,
        isBound: (ip) => proxies.get(family)?.isBound(ip) ?? false,
        onDevice: (object) => {
          loop.proxier.requestFull();
          if (object === undefined) loop.request('notifications of the kernel were lost');
          else loop.foreignChanges.noticed({ objects: [object] });
        },
        onNodeAddresses: () => loop.request(NODE_ADDRESSES),
      });
    },
    ready: (family) => {
      void removeCanary(clientOf(clients, family), log);
      waiting.delete(family);
      if (waiting.size === 0) removing = removeStaleTables(log);
    },
    // Neither IPVS nor ipset notifies of changes.
    verifiesEachPeriod: true,
    localIps: (family) => watch.localIps(family),
    close: async () => {
      await removing;
      for (const proxy of proxies.values()) proxy.close();
      await watch.close();
      await thread.close();
    },
  };
}

/** What the iptables mode watches; this mode has no use for it. */
async function removeCanary(client: IptablesClient, log: Log): Promise<void> {
  try {
    for (const table of ['mangle', 'nat', 'filter'] as const) await client.deleteChain(table, CHAINS.canary);
  } catch (error) {
    log.warn('Cannot remove a chain that the iptables mode left', { chain: CHAINS.canary, err: error });
  }
}

function timeoutsOf({ ipvs }: ModeOptions['config']): Parameters<typeof applyTimeouts>[2] {
  const seconds = (milliseconds: number): number => Math.floor(milliseconds / 1000);
  return {
    tcp: seconds(ipvs.tcpTimeout),
    tcpFin: seconds(ipvs.tcpFinTimeout),
    udp: seconds(ipvs.udpTimeout),
  };
}
