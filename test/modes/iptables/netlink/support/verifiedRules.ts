/** Runs inside a namespace: rules in the real kernel, tampered with, compared beside syncs, and repaired. */
import { execFileSync } from 'node:child_process';
import { type RulesChannel, withChannel } from '../../../../../src/netlink/channel.ts';
import { NETLINK_NETFILTER } from '../../../../../src/netlink/socket.ts';
import { IptablesClient } from '../../../../../src/modes/iptables/client.ts';
import { NetlinkChainReader } from '../../../../../src/modes/iptables/netlink/reader.ts';
import { IptablesRules } from '../../../../../src/modes/iptables/reconcile.ts';
import type { LayoutName } from '../../../../../src/modes/iptables/rules/fragment.ts';
import { LAYOUTS } from '../../../../../src/modes/iptables/rules/layouts/index.ts';
import { wakeTables } from '../../../../../src/modes/iptables/tableInfo.ts';
import { systemClock } from '../../../../../src/time/systemClock.ts';
import { TimeSlice } from '../../../../../src/time/timeSlice.ts';
import { Cluster } from '../../../../plan/cluster.ts';
import { VIEW } from '../../../../plan/given.ts';
import { WORLD_4 } from '../../rules/goldenCluster.ts';
import { OPTIONS } from '../../rules/harness.ts';

export interface Repair {
  readonly suspects: number;
  readonly repaired: readonly string[];
  /** Lines of a save that are not as they were before. */
  readonly differences: readonly string[];
  readonly suspectsAfterwards: number;
  /** The sync read and repaired only what was noted. */
  readonly kind: string;
}

/** Each is a list of commands, words separated by spaces; quotes do not work. */
export function repairs(layout: LayoutName, tamperings: readonly (readonly string[])[]): Promise<Repair[]> {
  return withChannel(NETLINK_NETFILTER, async (channel) => {
    const { rules, sync } = await written(layout, channel);
    const before = saved();
    const outcomes: Repair[] = [];
    for (const commands of tamperings) {
      for (const command of commands) runCommand(command);
      const { suspects } = await rules.verify(new TimeSlice(systemClock));
      const { repaired, kind } = await sync();
      const after = saved();
      outcomes.push({
        suspects,
        repaired,
        kind,
        differences: [
          ...before.filter((line) => !after.includes(line)),
          ...after.filter((line) => !before.includes(line)),
        ],
        suspectsAfterwards: (await rules.verify(new TimeSlice(systemClock))).suspects,
      });
    }
    return outcomes;
  });
}

async function written(layout: LayoutName, channel: RulesChannel) {
  const client = await IptablesClient.open({ family: 'IPv4', variant: 'nft' });
  const reader = new NetlinkChainReader('IPv4', channel);
  const rules = new IptablesRules(LAYOUTS[layout], client, {
    reader,
    wake: () => wakeTables(channel, 'IPv4'),
    now: () => performance.now(),
  });
  const cluster = new Cluster(VIEW, 'IPv4');
  cluster.tell(WORLD_4);
  const sync = () => rules.sync(cluster.planner, cluster.takeDirty(), OPTIONS);
  await sync();
  return { rules, sync };
}

function runCommand(command: string): void {
  const [program = '', ...args] = command.split(' ');
  execFileSync(program, program === 'nft' ? [args.join(' ')] : args, { stdio: 'pipe' });
}

/** Sorted: in shared chains the order of services is free. */
function saved(): readonly string[] {
  const text = execFileSync('iptables-nft-save', { encoding: 'utf8' });
  return text
    .split('\n')
    .filter((line) => !line.startsWith('#'))
    .map((line) => line.replace(/ \[\d+:\d+\]$/, ''))
    .sort();
}
