/** Runs inside a namespace: a cold start in each of the ways to write, and what the kernel then has. */
import { withChannel } from '../../../../../src/netlink/channel.ts';
import { NETLINK_NETFILTER } from '../../../../../src/netlink/socket.ts';
import { IptablesClient } from '../../../../../src/modes/iptables/client.ts';
import { NetlinkChainReader } from '../../../../../src/modes/iptables/netlink/reader.ts';
import { NetlinkWriter } from '../../../../../src/modes/iptables/netlink/writer.ts';
import { IptablesRules } from '../../../../../src/modes/iptables/reconcile.ts';
import type { LayoutName } from '../../../../../src/modes/iptables/rules/fragment.ts';
import { LAYOUTS } from '../../../../../src/modes/iptables/rules/layouts/index.ts';
import { Cluster } from '../../../../plan/cluster.ts';
import { VIEW } from '../../../../plan/given.ts';
import { WORLD_4 } from '../../rules/goldenCluster.ts';
import { OPTIONS } from '../../rules/harness.ts';
import { kernelNow } from './bothWriters.ts';
import { runInside } from './kernelRules.ts';

export interface ColdStart {
  readonly refused: readonly string[];
  readonly drafts: number;
  readonly counts: Readonly<Record<string, number>>;
  readonly kernel: ReturnType<typeof kernelNow>;
}

export type WayToWrite = 'restores' | 'steps' | 'drafts';

/** `commands`: of nft, before the start. */
export function coldStart(
  layout: LayoutName,
  way: WayToWrite,
  commands: readonly string[] = [],
): Promise<ColdStart> {
  return withChannel(NETLINK_NETFILTER, async (channel) => {
    runInside(['nft', 'flush', 'ruleset']);
    for (const command of commands) runInside(['nft', command]);
    const client = await IptablesClient.open({ family: 'IPv4', variant: 'nft' });
    let drafts = 0;
    if (way !== 'restores') {
      const writer = new NetlinkWriter('IPv4', channel);
      client.netlink = Object.assign(writer, { chainsPerCommit: 7 });
      client.draft = (table) => {
        drafts++;
        return way === 'drafts' ? writer.draft(table) : undefined;
      };
    }
    const rules = new IptablesRules(LAYOUTS[layout], client, {
      reader: new NetlinkChainReader('IPv4', channel),
      now: () => performance.now(),
    });
    const cluster = new Cluster(VIEW, 'IPv4');
    cluster.tell(WORLD_4);
    const { refused, counts } = await rules.sync(cluster.planner, cluster.takeDirty(), OPTIONS);
    const { 'restore.bytes': _, 'restore.refusals': __, ...others } = counts;
    return { refused: [...refused.keys()], drafts, counts: others, kernel: kernelNow('IPv4') };
  });
}
