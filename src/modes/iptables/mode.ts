/** The iptables mode's part of a start: its programs, and a watch over the node's addresses and our rules. */
import { LAYOUTS } from './rules/layouts/index.ts';
import { TABLES } from './rules/incremental.ts';
import { toSettings } from '../../config/index.ts';
import { AddressWatch } from '../addressWatch.ts';
import { localIps } from '../../system/interfaces.ts';
import { wakeTables } from './dormantTables.ts';
import { writeLocalnetGuard } from './localnetGuard.ts';
import { IptablesProxy } from './proxier.ts';
import { OwnPrograms } from './ownPrograms.ts';
import { RulesetWatch } from './rulesetWatch.ts';
import { readTableInfo } from './tableInfo.ts';
import { readNftGeneration } from '../../netlink/nftGeneration.ts';
import { NETLINK_NETFILTER } from '../../netlink/socket.ts';
import { NetlinkThread } from '../../netlink/thread.ts';
import type { Family } from '../../model/ip.ts';
import { type Generation, NODE_ADDRESSES } from '../../proxy/familyLoop.ts';
import { doorOf, openFamilies } from './families.ts';
import { StaleIpvs } from '../ipvs/staleObjects.ts';
import type { ModeOptions, ProxyMode } from '../mode.ts';
import { removeNftLeftovers } from '../nftables/staleObjects.ts';
import { askAgain, preflight } from '../prerequisites.ts';

export async function openIptablesMode(options: ModeOptions): Promise<ProxyMode> {
  const { config, nodeName, log } = options;
  const programs = new OwnPrograms();
  const { doors, served: families, leftOut } = await openFamilies({ ...options, programs });
  await preflight('iptables', doors, families, options);
  const { layout, masqueradeBit } = toSettings(config, nodeName);
  const isNft = doors.every(({ variant }) => variant === 'nft');
  const thread = await NetlinkThread.start();
  const addresses = await AddressWatch.start(thread);
  const rulesets = isNft ? await RulesetWatch.start(thread, programs) : undefined;
  const proxies = new Map<Family, IptablesProxy>();
  const waiting = new Set<Family>(families);
  const staleIpvs = new StaleIpvs({ log, drainLimitMs: config.junction.ipvsDrainLimit });
  let removing = Promise.resolve();
  return {
    name: 'iptables',
    families,
    leftOut,
    startable: doors.map(({ family }) => family),
    ask: (family) => askAgain('iptables', doors, family, options),
    backend: (family) => {
      const door = doorOf(doors, family);
      const channel = thread.transactionChannel(NETLINK_NETFILTER);
      const wake = door.variant === 'nft' ? () => wakeTables(channel, family) : undefined;
      const proxy = new IptablesProxy({ door, layout: LAYOUTS[layout], masqueradeBit, wake });
      proxies.set(family, proxy);
      return proxy;
    },
    ready: (family) => {
      waiting.delete(family);
      if (waiting.size === 0) removing = staleIpvs.remove().then(() => removeNftLeftovers(log));
    },
    guardLocalnet: async () => {
      const door = doors.find(({ family }) => family === 'IPv4');
      if (door) await writeLocalnetGuard(door, LAYOUTS[layout]);
    },
    attach: (loop) => {
      const { family } = loop.proxy;
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
    canary: (family) => doorOf(doors, family),
    isTold: rulesets !== undefined,
    generation: (family) =>
      doorOf(doors, family).variant === 'nft' ? nftGeneration : () => readTableInfo(family, TABLES),
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
