/** The iptables mode's part of a start: its programs, and a watch over the node's addresses and our rules. */
import { LAYOUTS } from './rules/layouts/index.ts';
import { TABLES } from './rules/diff.ts';
import { toSettings } from '../../config/index.ts';
import { AddressWatch } from '../addressWatch.ts';
import { localIps } from '../../system/interfaces.ts';
import { wakeTables } from './dormantTables.ts';
import { writeLocalnetGuard } from './localnetGuard.ts';
import { IptablesProxier } from './proxier.ts';
import { OwnPrograms } from './ownPrograms.ts';
import { RulesetWatch } from './rulesetWatch.ts';
import { readTableInfo } from './tableInfo.ts';
import { readNftGeneration } from '../../netlink/nftables/message.ts';
import { NETLINK_NETFILTER } from '../../netlink/socket.ts';
import { NetlinkThread } from '../../netlink/thread.ts';
import type { Family } from '../../model/ip.ts';
import { type Generation, NODE_ADDRESSES } from '../../proxy/syncRunner.ts';
import { clientOf, openFamilies } from './families.ts';
import { StaleIpvs } from '../ipvs/staleObjects.ts';
import type { ModeOptions, ProxyMode } from '../mode.ts';
import { removeStaleTables } from '../nftables/staleObjects.ts';
import { askAgain, preflight } from '../prerequisites.ts';

export async function openIptablesMode(options: ModeOptions): Promise<ProxyMode> {
  const { config, nodeName, log } = options;
  const programs = new OwnPrograms();
  const { clients, served: families, leftOut } = await openFamilies({ ...options, programs });
  await preflight('iptables', clients, families, options);
  const { layout, masqueradeBit } = toSettings(config, nodeName);
  const isNft = clients.every(({ variant }) => variant === 'nft');
  const thread = await NetlinkThread.start();
  const addresses = await AddressWatch.start(thread);
  const rulesets = isNft ? await RulesetWatch.start(thread, programs) : undefined;
  const proxies = new Map<Family, IptablesProxier>();
  const waiting = new Set<Family>(families);
  const staleIpvs = new StaleIpvs({ log, drainLimitMs: config.junction.ipvsDrainLimit });
  let removing = Promise.resolve();
  return {
    name: 'iptables',
    families,
    leftOut,
    startable: clients.map(({ family }) => family),
    ask: (family) => askAgain('iptables', clients, family, options),
    backend: (family) => {
      const client = clientOf(clients, family);
      const channel = thread.transactionChannel(NETLINK_NETFILTER);
      const wake = client.variant === 'nft' ? () => wakeTables(channel, family) : undefined;
      const proxy = new IptablesProxier({ client, layout: LAYOUTS[layout], masqueradeBit, wake });
      proxies.set(family, proxy);
      return proxy;
    },
    ready: (family) => {
      waiting.delete(family);
      if (waiting.size === 0) removing = staleIpvs.remove().then(() => removeStaleTables(log));
    },
    guardLocalnet: async () => {
      const client = clients.find(({ family }) => family === 'IPv4');
      if (client) await writeLocalnetGuard(client, LAYOUTS[layout]);
    },
    attach: (loop) => {
      const { family } = loop.proxier;
      addresses.follow({ onNodeAddresses: () => loop.request(NODE_ADDRESSES) });
      rulesets?.follow({
        family,
        onChange: (touched, changedBy) => {
          const objects = proxies.get(family)?.noteForeign(touched) ?? [];
          if (objects.length > 0) loop.foreignChanges.noticed({ objects, changedBy });
        },
        onLost: (changedBy) => loop.suspect(changedBy),
      });
    },
    canary: (family) => clientOf(clients, family),
    isTold: rulesets !== undefined,
    generation: (family) =>
      clientOf(clients, family).variant === 'nft' ? nftGeneration : () => readTableInfo(family, TABLES),
    requestJumps: (family) => () => proxies.get(family)?.requestJumps(),
    localIps: (family) => localIps(family),
    close: async () => {
      await removing;
      await staleIpvs.close();
      await rulesets?.close();
      await addresses.close();
      await thread.close();
    },
  };
}

function nftGeneration(): Generation | undefined {
  const id = readNftGeneration();
  return id === undefined ? undefined : { id };
}
