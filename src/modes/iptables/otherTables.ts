/** Tables of nf_tables that other programs have beside those of iptables, such as firewalld's: a packet passes them too. */
import type { Family } from '../../model/ip.ts';
import { messagesOf, type NetlinkChannel } from '../../netlink/channel.ts';
import { decodeChain, getChains } from '../../netlink/nftables/objects.ts';
import type { Packet } from '../../plan/decide.ts';
import type { LearnedElement } from '../nftables/kernel/machine.ts';
import { NetlinkSource } from '../nftables/kernel/netlinkSource.ts';
import { printExpressions } from '../nftables/kernel/ruleText.ts';
import { tableName } from '../nftables/kernel/source.ts';
import { KernelWalk } from '../nftables/kernel/walk.ts';
import type { RuleExit, Way } from '../walk.ts';
import type { NftTable } from './kernelTables.ts';
import type { OtherChains, OtherRule } from './rules/walk.ts';

/** Chains are listed by family. With more of them in it, that takes longer than a question may. */
const MOST_CHAINS = 5000;

/** What is read of them for one packet. */
interface OtherWalk {
  readonly chains: OtherChains | undefined;
  /** Returns whether something was missing, and has been read now. */
  fill(): Promise<boolean>;
  /** What could not be evaluated, so far. */
  notes(): readonly string[];
}

export function notEvaluated({ family, name }: NftTable): string {
  return `not evaluated: the nf_tables table ${family} ${name}`;
}

/** `channel` is called where there are such tables. `all`: every table of this family, those of iptables among them. */
export async function beginOtherWalk(
  family: Family,
  packet: Packet,
  others: readonly NftTable[],
  all: number,
  channel: (() => Promise<NetlinkChannel>) | undefined,
): Promise<OtherWalk> {
  const isRead = (table: NftTable): boolean =>
    channel !== undefined && (table.family === 'inet' || all <= MOST_CHAINS);
  const leftOut = others.filter((table) => !isRead(table)).map(notEvaluated);
  const read = others.filter(isRead);
  if (!channel || read.length === 0)
    return { chains: undefined, fill: async () => false, notes: () => leftOut };
  const open = await channel();
  const found = { chains: await chainsOf(open, read), tables: [] };
  const walk = new KernelWalk(family, new NetlinkSource(family, open), found, () => false);
  const tooLong = new Set<string>();
  return {
    chains: {
      baseChains: (point) => walk.baseChains(point),
      rules: (table, chain) =>
        walk.rulesOf(table, chain, tooLong)?.map(
          (rule): OtherRule => ({
            *leave(way, context) {
              const hasArrived = packet.inInterface !== undefined;
              const exits = yield* walk.leave(rule, { ...way, learned: [] }, hasArrived, context);
              return withoutLearned(exits, way);
            },
            print: () => printExpressions(rule.expressions),
            details: () => walk.detailsOf(rule),
          }),
        ),
    },
    fill: () => walk.fill(),
    notes: () => [...leftOut, ...tooLong],
  };
}

type ListedChains = ConstructorParameters<typeof KernelWalk>[2]['chains'];

async function chainsOf(channel: NetlinkChannel, tables: readonly NftTable[]): Promise<ListedChains> {
  const names = new Set(tables.map(({ family, name }) => tableName({ family, table: name })));
  const families = [...new Set(tables.map(({ family }) => family))];
  const replies = await channel.dumpAll(families.map((family) => getChains(family)));
  return families.flatMap((family, index) =>
    messagesOf(replies[index], 'the chains')
      .map(({ payload }) => decodeChain(payload))
      .map(({ table, name: chain, base, references }) => ({ family, table, chain, base, references }))
      .filter((chain) => names.has(tableName(chain))),
  );
}

/** What another program's rules learn of a packet is nothing that ours ask for. */
function withoutLearned(
  exits: readonly RuleExit<LearnedElement>[],
  { learned }: Way<string>,
): readonly RuleExit<string>[] {
  return exits.map((exit) => ({ ...exit, way: { ...exit.way, learned } }));
}
