/** The iptables mode: its programs, and a watch over the node's addresses and our rules. */
import { LAYOUTS } from './rules/layouts/index.ts';
import { toSettings } from '../../config/settings.ts';
import { AddressWatch } from '../addressWatch.ts';
import { localIps } from '../../system/interfaces.ts';
import { IptablesReader } from './inspect.ts';
import { nftLook } from './kernelTables.ts';
import { iptablesSync, machineSettings, makeCounter } from './settings.ts';
import { writeLocalnetGuard } from './rules/foreignRules.ts';
import { outInterfaceNow } from '../walkRunner.ts';
import { OwnPrograms, RulesetWatch } from './rulesetWatch.ts';
import { ConntrackTable } from '../../netlink/conntrack.ts';
import { NETLINK_NETFILTER } from '../../netlink/socket.ts';
import { NetlinkSockets } from '../../netlink/sockets.ts';
import { NODE_ADDRESSES } from '../../proxy/syncRunner.ts';
import { servedFamilies, StaleObjects } from '../staleObjects.ts';
import { CanaryMonitor } from './canary.ts';
import { clientOf, openFamilies } from './families.ts';
import { StaleIpvs } from '../ipvs/cleanup.ts';
import type { Mode, ModeOptions } from '../mode.ts';
import { removeStaleTables } from '../nftables/cleanup.ts';
import { askAgain, preflight } from '../prerequisites.ts';

export async function openIptablesMode(options: ModeOptions): Promise<Mode> {
  const { config, nodeName, log } = options;
  const programs = new OwnPrograms();
  const { clients, families } = await openFamilies({ ...options, programs, nft: nftLook });
  const served = servedFamilies(families);
  await preflight('iptables', clients, served, options);
  const { layout: layoutName, masqueradeBit } = toSettings(config, nodeName);
  const layout = LAYOUTS[layoutName];
  const sockets = new NetlinkSockets();
  const addresses = await AddressWatch.start(sockets);
  const netfilter = sockets.channel(NETLINK_NETFILTER);
  const isNft = clients.every(({ variant }) => variant === 'nft');
  const rulesets = isNft ? await RulesetWatch.start(sockets, programs) : undefined;
  const staleIpvs = new StaleIpvs({ log, drainLimitMs: config.junction.ipvsDrainLimit });
  const stale = new StaleObjects(served, async () => {
    await staleIpvs.remove();
    await removeStaleTables(log);
  });
  return {
    name: 'iptables',
    families,
    guardLocalnet: async () => {
      const client = clients.find(({ family }) => family === 'IPv4');
      if (client) await writeLocalnetGuard(client, layout);
    },
    applySettings: () => Promise.resolve(),
    open: (family, events) => {
      const client = clientOf(clients, family);
      const settings = machineSettings(client, masqueradeBit, makeCounter);
      const sync = iptablesSync({ client, layout, settings });
      addresses.subscribe({ onNodeAddresses: () => events.request(NODE_ADDRESSES) });
      rulesets?.subscribe({
        family,
        onChange: (touches, changedBy) => {
          const objects = sync.noteForeign(touches);
          if (objects.length > 0) events.foreignChange({ objects, changedBy });
        },
        onLost: () => events.notificationsLost(),
      });
      return {
        writer: sync,
        verification: {
          isNotified: rulesets !== undefined,
          flushMonitor: (intervalMs, onFlushed) => new CanaryMonitor({ client, intervalMs, onFlushed, log }),
        },
        kernel: new IptablesReader({
          client,
          layout: layoutName,
          settings,
          outInterface: outInterfaceNow,
          channel: () => netfilter,
        }),
        flows: new ConntrackTable(family, netfilter),
        localIps: () => localIps(family),
        ready: () => stale.ready(family),
      };
    },
    probe: (family) => askAgain('iptables', clients, family, options),
    close: async () => {
      await stale.close();
      await staleIpvs.close();
      await rulesets?.close();
      await addresses.close();
      await sockets.close();
    },
  };
}
