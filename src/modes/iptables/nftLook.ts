/** What nf_tables has of iptables, asked of the kernel: programs list everything, 5 s with 10,000 services, to answer as much. */
import { attempt, JunctionError } from '../../errors.ts';
import type { Family } from '../../model/ip.ts';
import { type Message, NLM_F_DUMP } from '../../netlink/codec.ts';
import { namesIn, type TablePlace } from '../../netlink/nftables/message.ts';
import { decodeRule, getChain, getChains, getRules } from '../../netlink/nftables/objects.ts';
import { NETLINK_NETFILTER } from '../../netlink/socket.ts';
import { type NetlinkRequest, requestOnce } from '../../netlink/request.ts';
import { IPTABLES_TABLES } from './kernelTables.ts';

export interface NftLook {
  hasChain(table: string, chain: string): boolean;
  /** None where there is no such table. */
  chainNames(table: string): ReadonlySet<string>;
  /** Where the rules of this chain lead, in their order: a chain, or `ACCEPT`. */
  jumps(table: string, chain: string): readonly string[];
  /** Rules of iptables in all of its tables. Counting ends once there are more than `most`. */
  countRules(most: number): number;
}

/** Of this thread's network namespace. A kernel without nf_tables, or one that refuses, has none of it. */
export function nftLook(family: Family): NftLook {
  const placeOf = (table: string): TablePlace => ({ family: family === 'IPv4' ? 'ip' : 'ip6', table });
  return {
    hasChain: (table, chain) => {
      const reply = requestOnce(NETLINK_NETFILTER, getChain({ ...placeOf(table), chain }));
      return typeof reply === 'object' && reply.kind === 'answered';
    },
    chainNames: (table) => {
      const names = new Set<string>();
      for (const message of dump(getChains(placeOf(table).family))) {
        const { table: its, chain } = namesIn(message);
        if (its === table && chain !== undefined) names.add(chain);
      }
      return names;
    },
    jumps: (table, chain) =>
      dump(getRules(placeOf(table), chain)).flatMap(({ payload }) =>
        decodeRule(payload).expressions.flatMap((each) =>
          each.kind === 'verdict' ? (each.chain ?? each.verdict.toUpperCase()) : [],
        ),
      ),
    countRules: (most) => {
      let count = 0;
      for (const table of IPTABLES_TABLES) if (count <= most) count += countIn(placeOf(table), most - count);
      return count;
    },
  };
}

/** iptables gives every rule a counter. A rule without one is a rule of nft, which iptables would not print. */
function countIn(place: TablePlace, most: number): number {
  let count = 0;
  for (const { payload } of attempt(() => dump(getRules(place))) ?? []) {
    if (decodeRule(payload).expressions.some(({ kind }) => kind === 'counter')) count++;
    if (count > most) break;
  }
  return count;
}

/** Only a runaway program changes a table faster than it can be read. */
const READINGS = 10;

function dump(request: NetlinkRequest): readonly Message[] {
  for (let reading = 1; ; reading++) {
    const reply = requestOnce(NETLINK_NETFILTER, { ...request, flags: request.flags | NLM_F_DUMP });
    if (typeof reply === 'string') throw new JunctionError('NETLINK_FAILED', reply);
    if (reply.kind === 'refused')
      throw new JunctionError('NETLINK_FAILED', `netlink: tables of iptables cannot be read: ${reply.name}`);
    if (!reply.interrupted || reading === READINGS) return reply.messages;
  }
}
