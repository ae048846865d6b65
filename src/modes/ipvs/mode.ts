/** The IPVS mode's part of a start: kernel settings, the netlink thread, and an eye on addresses and the device. */
import { toSettings } from '../../config/index.ts';
import { CHAINS } from '../iptables/rules/names.ts';
import type { IptablesDoor } from '../iptables/client.ts';
import { NetlinkIpvsDoor } from './client.ts';
import { IpvsProxy } from './proxier.ts';
import { findNumbers } from './numbers.ts';
import { applyIpvsSysctls, applyTimeouts } from './settings.ts';
import { AddressWatch } from '../addressWatch.ts';
import { NETLINK_GENERIC, NETLINK_NETFILTER, NETLINK_ROUTE } from '../../netlink/socket.ts';
import { NetlinkThread } from '../../netlink/thread.ts';
import type { Log } from '../../log/log.ts';
import { type Family, parseCidr } from '../../model/ip.ts';
import { NODE_ADDRESSES } from '../../proxy/familyLoop.ts';
import { doorOf, openFamilies } from '../iptables/families.ts';
import type { ModeOptions, ProxyMode } from '../mode.ts';
import { removeNftLeftovers } from '../nftables/staleObjects.ts';
import { askAgain, preflight } from '../prerequisites.ts';

export async function openIpvsMode(options: ModeOptions): Promise<ProxyMode> {
  const { config, nodeName, log } = options;
  const { ipvs } = config;
  const { doors, served: families, leftOut } = await openFamilies(options);
  await preflight('ipvs', doors, families, options);
  const thread = await NetlinkThread.start();
  const channels = {
    route: thread.channel(NETLINK_ROUTE),
    netfilter: thread.channel(NETLINK_NETFILTER),
    generic: thread.channel(NETLINK_GENERIC),
  };
  const numbers = await findNumbers(channels, 'IPv4');
  const watch = await AddressWatch.start(thread);
  const proxies = new Map<Family, IpvsProxy>();
  const waiting = new Set<Family>(families);
  let removing = Promise.resolve();
  return {
    name: 'ipvs',
    families,
    leftOut,
    startable: doors.map(({ family }) => family),
    ask: (family) => askAgain('ipvs', doors, family, options),
    applySettings: async () => {
      applyIpvsSysctls({ strictARP: ipvs.strictARP }, log, { root: config.junction.sysctlRoot });
      await applyTimeouts(channels.generic, numbers.ipvs, timeoutsOf(config), log);
    },
    backend: (family) => {
      const proxy = new IpvsProxy({
        iptables: doorOf(doors, family),
        door: new NetlinkIpvsDoor(family, channels),
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
      const { family } = loop.proxy;
      watch.follow({
        family,
        isBound: (ip) => proxies.get(family)?.isBound(ip) ?? false,
        onDevice: (object) => {
          loop.proxy.requestFull();
          if (object === undefined) loop.request('notifications of the kernel were lost');
          else loop.foreignChanges.noticed({ objects: [object] });
        },
        onNodeAddresses: () => loop.request(NODE_ADDRESSES),
      });
    },
    ready: (family) => {
      void removeCanary(doorOf(doors, family), log);
      waiting.delete(family);
      if (waiting.size === 0) removing = removeNftLeftovers(log);
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
async function removeCanary(door: IptablesDoor, log: Log): Promise<void> {
  try {
    for (const table of ['mangle', 'nat', 'filter'] as const) await door.deleteChain(table, CHAINS.canary);
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
