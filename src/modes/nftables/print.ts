/** What `junction plan` prints of the nftables mode: the whole table. */
import { TABLE } from './rules/names.ts';
import { NFT_FAMILY, printTable } from './rules/print.ts';
import { wholeTable } from './rules/referenceCounts.ts';
import type { Settings } from '../../config/settings.ts';
import { type Cidr, type Ip, isLoopback } from '../../model/ip.ts';
import { answersNodePorts } from '../../plan/decide.ts';
import type { Plan } from '../../plan/types.ts';
import { nodeIpsOf } from '../../system/interfaces.ts';

/** For `nft -f`, over whatever such a table has. */
export function nftPlanText(plan: Plan, settings: Settings, serviceCidrs: readonly Cidr[]): string {
  const { family } = plan;
  const whole = wholeTable(plan, {
    masqueradeMark: (1 << settings.masqueradeBit) >>> 0,
    counters: settings.counters,
    nodePortIps: nodePortIps(plan),
    serviceCidrs,
  });
  const name = `${NFT_FAMILY[family]} ${TABLE}`;
  const table = printTable(whole, family);
  // With the table in one transaction: packets meet the one before or this one. nft adds to a table that is there, and nft
  // 1.0.6 cannot even do that where keys have a random part ("conflicting protocols specified").
  const replacing = `add table ${name}\ndelete table ${name}\n`;
  return replacing + (family === 'IPv4' ? table : table.replaceAll(LEARNING, UNWRITABLE));
}

const LEARNING = /^([ \t]*)((?:.* )?update @affinity-\w+ .*)$/gm;
/**
 * nft 1.0.6 has no registers left for two IPv6 addresses, a port and an endpoint, and ends with a failed assertion.
 * Junction has room for them.
 */
const UNWRITABLE = '$1# Junction writes this, nft cannot: $2';

export function printNftPlan(plan: Plan, settings: Settings, serviceCidrs: readonly Cidr[]): string {
  return `# ${plan.family}, for: nft -f -\n${nftPlanText(plan, settings, serviceCidrs)}`;
}

/** The node's own address counts, if its Node tells it: who plans is seldom the node, and this mode's default names it. */
function nodePortIps({ family, view }: Plan): readonly Ip[] {
  const { nodeIp } = view;
  const own = nodeIp === undefined || isLoopback(nodeIp) ? [] : [nodeIp];
  const all = new Set([...nodeIpsOf(family), ...own]);
  return [...all].filter((ip) => answersNodePorts(view.nodePorts, ip)).sort();
}
