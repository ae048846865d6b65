/** The IPVS mode: kernel settings, netlink, and a watch over addresses and the device. */
import { toSettings } from '../../config/settings.ts';
import { channelsOf, NetlinkIpvsClient, requireIpvs } from './client.ts';
import { IpvsReader } from './inspect.ts';
import { applyIpvsSysctls, applyTimeouts } from './settings.ts';
import { IpvsSync } from './sync.ts';
import { AddressWatch } from '../addressWatch.ts';
import { ConntrackTable } from '../../netlink/conntrack.ts';
import { NETLINK_NETFILTER } from '../../netlink/socket.ts';
import { NetlinkSockets } from '../../netlink/sockets.ts';
import { NODE_ADDRESSES } from '../../proxy/syncRunner.ts';
import { clientOf, openFamilies } from '../iptables/families.ts';
import { TablesReader } from '../iptables/tablesReader.ts';
import { outInterfaceNow } from '../walkRunner.ts';
import { servedFamilies, StaleObjects } from '../staleObjects.ts';
import type { Mode, ModeOptions } from '../mode.ts';
import { removeStaleTables } from '../nftables/cleanup.ts';
import { askAgain, preflight } from '../prerequisites.ts';

export async function openIpvsMode(options: ModeOptions): Promise<Mode> {
  const { config, nodeName, log } = options;
  const { ipvs } = config;
  const { clients, families } = await openFamilies(options);
  const served = servedFamilies(families);
  await preflight('ipvs', clients, served, options);
  const sockets = new NetlinkSockets();
  const channels = channelsOf(sockets);
  const ipvsNumber = await requireIpvs(channels.generic);
  const watch = await AddressWatch.start(sockets);
  const opened: IpvsSync[] = [];
  const stale = new StaleObjects(served, () => removeStaleTables(log));
  return {
    name: 'ipvs',
    families,
    guardLocalnet: () => Promise.resolve(),
    applySettings: async () => {
      applyIpvsSysctls(ipvs, log, { root: config.junction.sysctlRoot });
      await applyTimeouts(channels.generic, ipvsNumber, ipvs, log);
    },
    open: (family, events) => {
      const iptables = clientOf(clients, family);
      const client = new NetlinkIpvsClient(family, channels);
      const { masqueradeBit, scheduler, excludeCIDRs } = toSettings(config, nodeName);
      const sync = new IpvsSync({
        iptables,
        client,
        masqueradeBit,
        scheduler,
        excludeCIDRs,
        drainLimitMs: config.junction.ipvsDrainLimit,
        nodeIps: () => watch.nodeIps(family),
        onDrainFailure: (error) =>
          log.error('Cannot check draining endpoints', { ipFamily: family, err: error }),
      });
      opened.push(sync);
      watch.subscribe({
        family,
        isBound: (ip) => sync.isBound(ip),
        onDevice: (object) => {
          sync.requestFull();
          if (object === undefined) events.request('notifications of the kernel were lost');
          else events.foreignChange({ objects: [object] });
        },
        onNodeAddresses: () => events.request(NODE_ADDRESSES),
      });
      return {
        writer: sync,
        // Neither IPVS nor ipset notifies of changes.
        verification: { fullSyncEvery: 'syncPeriod' },
        kernel: new IpvsReader({
          family,
          tables: new TablesReader({
            client: iptables,
            outInterface: outInterfaceNow,
            channel: () => channels.netfilter,
          }),
          client,
          settings: { masqueradeBit, scheduler, excludeCIDRs, randomFully: iptables.features.randomFully },
          nodeIps: () => watch.nodeIps(family),
        }),
        flows: new ConntrackTable(family, sockets.channel(NETLINK_NETFILTER)),
        localIps: () => watch.localIps(family),
        ready: () => stale.ready(family),
      };
    },
    connections: async () => {
      const readings = [];
      for (const sync of opened) readings.push(await sync.readConnections());
      return readings.flat();
    },
    probe: (family) => askAgain('ipvs', clients, family, options),
    close: async () => {
      await stale.close();
      await watch.close();
      await sockets.close();
    },
  };
}
