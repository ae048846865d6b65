/** The nftables mode: one socket that writes our tables, and a watch over the node's addresses. */
import { AddressWatch } from '../addressWatch.ts';
import { readConnections } from './counters.ts';
import { removeKubeProxyTables, TRIAL_TABLE } from './cleanup.ts';
import { NftReader } from './inspect.ts';
import { NetlinkSource } from './kernel/source.ts';
import { outInterfaceNow } from '../walkRunner.ts';
import { NftMonitor } from './monitor.ts';
import { Backstop } from './rules/backstop.ts';
import { BACKSTOP_TABLE } from './rules/names.ts';
import { NFT_FAMILY } from './rules/print.ts';
import { NftSync } from './sync.ts';
import { NetlinkNftTables } from './client.ts';
import { ConntrackTable } from '../../netlink/conntrack.ts';
import type { NetlinkChannel } from '../../netlink/channel.ts';
import { transaction } from '../../netlink/nftables/transaction.ts';
import { NETLINK_NETFILTER } from '../../netlink/socket.ts';
import { NetlinkSockets } from '../../netlink/sockets.ts';
import { FAMILIES, type Family, familyOf } from '../../model/ip.ts';
import type { FamilyEvents } from '../../proxy/foreignChanges.ts';
import { NODE_ADDRESSES } from '../../proxy/syncRunner.ts';
import type { ConnectionReading } from '../../telemetry/metrics/connections.ts';
import { systemClock } from '../../time/systemClock.ts';
import { TimeSlice } from '../../time/timeSlice.ts';
import { servedFamilies, StaleObjects } from '../staleObjects.ts';
import { isIpv6Enabled, logStack } from '../iptables/families.ts';
import { removeStaleRules } from '../iptables/cleanup.ts';
import { StaleIpvs } from '../ipvs/cleanup.ts';
import type { Mode, ModeOptions } from '../mode.ts';
import { askForTables, nftPreflight } from '../prerequisites.ts';

interface Opened {
  readonly family: Family;
  readonly sync: NftSync;
  readonly events: FamilyEvents;
}

export async function openNftMode(options: ModeOptions): Promise<Mode> {
  const { config, log } = options;
  const enabled = FAMILIES.filter((family) => family === 'IPv4' || isIpv6Enabled());
  const families = await nftPreflight(enabled, options);
  logStack(families, log);
  const hasCounters = config.junction.nftablesCounters;
  const sockets = new NetlinkSockets();
  const channel = sockets.channel(NETLINK_NETFILTER);
  const addresses = await AddressWatch.start(sockets);
  const served = servedFamilies(families);
  const protection = await chooseProtection(config.junction.nftablesProtection, channel, served);
  log.info(PROTECTED[protection], { protection });
  const opened: Opened[] = [];
  const monitor =
    protection === 'owned'
      ? undefined
      : await NftMonitor.start(sockets, (change) => {
          for (const { family, sync, events } of opened) {
            if (change && change.family !== family) continue;
            if (!sync.noteForeign(change?.tables)) continue;
            if (change) events.foreignChange(change);
            else events.request('notifications of the kernel were lost', true);
          }
        });
  const staleIpvs = new StaleIpvs({ log, drainLimitMs: config.junction.ipvsDrainLimit });
  // Rules are deleted before the sets that they match.
  const stale = new StaleObjects(served, async () => {
    await removeKubeProxyTables(channel, log);
    await removeStaleRules(log);
    await staleIpvs.remove();
  });
  /** Of tables that were replaced and deleted: the last counts, until the next reading. */
  const carried: ConnectionReading[] = [];
  return {
    name: 'nftables',
    families,
    guardLocalnet: () => Promise.resolve(),
    applySettings: () => Promise.resolve(),
    open: (family, events) => {
      const tables = new NetlinkNftTables(family, channel);
      const sync = new NftSync({
        tables,
        isProtected: protection === 'owned',
        backstop:
          protection === 'backstop'
            ? new Backstop({
                client: tables.table(BACKSTOP_TABLE),
                now: () => systemClock.now(),
                timeSlice: new TimeSlice(systemClock),
                onFailure: (reason) =>
                  log.warn('Our table has no backstop for now', { ipFamily: family, reason }),
              })
            : undefined,
        masqueradeBit: config.nftables.masqueradeBit,
        counters: hasCounters,
        nodeIps: () => addresses.nodeIps(family),
        request: (cause) => events.request(cause, true),
        onBackoff: (delayMs) =>
          log.warn('Other programs keep changing our table; it is rebuilt less often', {
            ipFamily: family,
            rebuildAfter: `${Math.ceil(delayMs / 1000)}s`,
          }),
        onReplaced: async (table, ruleset) => {
          if (hasCounters) carried.push(...(await readConnections(channel, family, table, ruleset)));
        },
      });
      opened.push({ family, sync, events });
      addresses.subscribe({ onNodeAddresses: () => events.request(NODE_ADDRESSES) });
      return {
        writer: sync,
        verification: { isNotified: true },
        kernel: new NftReader({
          family,
          source: new NetlinkSource(family, channel),
          facts: () => sync.facts,
          outInterface: outInterfaceNow,
        }),
        flows: new ConntrackTable(family, channel),
        localIps: () => addresses.localIps(family),
        ready: () => stale.ready(family),
        setServiceCidrs: (cidrs) => {
          sync.setServiceCidrs(cidrs.filter((cidr) => familyOf(cidr) === family));
          events.request('ServiceCIDRs changed');
        },
      };
    },
    probe: (family) => askForTables(family, options),
    connections: async () => {
      const readings: ConnectionReading[] = [];
      for (const { family, sync } of opened) {
        const table = await sync.settled();
        if (table) readings.push(...(await readConnections(channel, family, table.name, table.ruleset)));
      }
      return [...carried.splice(0), ...readings];
    },
    close: async () => {
      await stale.close();
      await staleIpvs.close();
      for (const { sync } of opened) await sync.settled();
      await monitor?.close();
      await addresses.close();
      await sockets.close();
    },
  };
}

/** `owned`: the kernel refuses their changes. `backstop`: ours is repaired, and a table behind it holds connections meanwhile. */
type Protection = 'owned' | 'backstop' | 'none';

async function chooseProtection(
  setting: string,
  channel: NetlinkChannel,
  families: readonly Family[],
): Promise<Protection> {
  if (setting === 'backstop' || setting === 'none') return setting;
  for (const family of families) if (!(await canBeOwned(channel, family))) return 'backstop';
  return 'owned';
}

/** Whether a table can be owned and outlive its owner: since Linux 6.9. Older kernels answer EOPNOTSUPP or EINVAL. */
async function canBeOwned(channel: NetlinkChannel, family: Family): Promise<boolean> {
  const place = { family: NFT_FAMILY[family], table: TRIAL_TABLE };
  // A kernel without nf_tables for the family refuses any table; and another may have been left by a check that was killed.
  for (const flags of [{}, { isOwned: true, isPersistent: true }]) {
    const operations = [
      { kind: 'addTable', ...place, ...flags },
      { kind: 'deleteTable', ...place },
    ] as const;
    if ((await channel.commit(transaction(operations))).state !== 'done') return false;
  }
  return true;
}

const PROTECTED = {
  owned: 'No other program can change our tables while Junction runs',
  backstop:
    'Other programs can change our tables; a table behind them holds connections until they are rebuilt',
  none: 'Other programs can change our tables; nothing holds connections until they are rebuilt',
} as const;
