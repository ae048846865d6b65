/** The iptables mode: its programs, and a watch over the node's addresses and our rules. */
import { isJunctionError } from '../../errors.ts';
import { LAYOUTS } from './rules/layouts/index.ts';
import { toSettings } from '../../config/settings.ts';
import { AddressWatch } from '../addressWatch.ts';
import { localIps } from '../../system/interfaces.ts';
import { wakeTables } from './tableInfo.ts';
import { IptablesReader } from './inspect.ts';
import type { IptablesClient } from './client.ts';
import { NetlinkChainReader } from './netlink/reader.ts';
import { IptablesProxier, writeLocalnetGuard } from './proxier.ts';
import { outInterfaceNow } from '../outInterface.ts';
import { OwnPrograms, RulesetWatch } from './rulesetWatch.ts';
import { ConntrackTable } from '../../netlink/conntrack.ts';
import { NETLINK_NETFILTER } from '../../netlink/socket.ts';
import { NetlinkThread } from '../../netlink/thread.ts';
import { NODE_ADDRESSES } from '../../proxy/syncRunner.ts';
import { servedFamilies } from '../familyState.ts';
import { StaleObjects } from '../staleObjects.ts';
import { CanaryMonitor } from './canary.ts';
import { clientOf, openFamilies } from './families.ts';
import { StaleIpvs } from '../ipvs/cleanup.ts';
import type { Mode, ModeOptions } from '../mode.ts';
import { removeStaleTables } from '../nftables/cleanup.ts';
import { askAgain, preflight } from '../prerequisites.ts';
import { chooseWriter } from './netlink/chooseWriter.ts';

export async function openIptablesMode(options: ModeOptions): Promise<Mode> {
  const { config, nodeName, log } = options;
  const programs = new OwnPrograms();
  const { clients, families } = await openFamilies({ ...options, programs });
  const served = servedFamilies(families);
  await preflight('iptables', clients, served, options);
  const { layout: layoutName, masqueradeBit } = toSettings(config, nodeName);
  const layout = LAYOUTS[layoutName];
  const thread = await NetlinkThread.start();
  const addresses = await AddressWatch.start(thread);
  const netfilter = thread.transactionChannel(NETLINK_NETFILTER);
  const choose = (client: IptablesClient): Promise<void> =>
    chooseWriter(client, { junction: config.junction, layout, channel: netfilter, log });
  for (const family of served) await choose(clientOf(clients, family));
  const isNft = clients.every(({ variant }) => variant === 'nft');
  const rulesets = isNft ? await RulesetWatch.start(thread, programs) : undefined;
  const staleIpvs = new StaleIpvs({ log, drainLimitMs: config.junction.ipvsDrainLimit });
  const stale = new StaleObjects(served, async () => {
    await staleIpvs.remove();
    await removeStaleTables(log);
  });
  const nftReader = ({
    family,
    variant,
    version,
    timeSlice,
  }: IptablesClient): NetlinkChainReader | undefined =>
    variant === 'nft' ? new NetlinkChainReader(family, netfilter, { timeSlice, version }) : undefined;
  return {
    name: 'iptables',
    families,
    guardLocalnet: async () => {
      const client = clients.find(({ family }) => family === 'IPv4');
      const reader = client && nftReader(client);
      if (client) await writeLocalnetGuard(client, layout, reader);
    },
    applySettings: () => Promise.resolve(),
    open: (family, events) => {
      const client = clientOf(clients, family);
      const wake = client.variant === 'nft' ? () => wakeTables(netfilter, family) : undefined;
      const reader = nftReader(client);
      const proxier = new IptablesProxier({
        client,
        layout,
        masqueradeBit,
        wake,
        reader,
      });
      addresses.subscribe({ onNodeAddresses: () => events.request(NODE_ADDRESSES) });
      rulesets?.subscribe({
        family,
        onChange: (touched, changedBy) => {
          const objects = proxier.rules.noteForeign(touched);
          if (objects.length > 0) events.foreignChange({ objects, changedBy });
        },
        onLost: () => events.notificationsLost(),
      });
      return {
        writer: proxier,
        verification: {
          isNotified: rulesets !== undefined,
          fullSyncEvery: 'hour',
          flushMonitor: (intervalMs, onFlushed) =>
            new CanaryMonitor({ client, reader, intervalMs, onFlushed, log }),
        },
        kernel: new IptablesReader({
          client,
          layout: layoutName,
          settings: proxier.settings,
          outInterface: outInterfaceNow,
          channel: async () => netfilter,
        }),
        flows: new ConntrackTable(family, netfilter),
        localIps: () => localIps(family),
        ready: () => stale.ready(family),
      };
    },
    probe: async (family) => {
      const answer = await askAgain('iptables', clients, family, options);
      if (answer.state !== 'works') return answer;
      try {
        await choose(clientOf(clients, family));
        return answer;
      } catch (error) {
        if (!isJunctionError(error)) throw error;
        return { state: 'absent', reason: error.message, remedy: error.hint };
      }
    },
    close: async () => {
      await stale.close();
      await staleIpvs.close();
      await rulesets?.close();
      await addresses.close();
      await thread.close();
    },
  };
}
