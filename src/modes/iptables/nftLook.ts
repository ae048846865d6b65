/** What nf_tables has of iptables, asked of the kernel: programs list everything, 5 s with 10,000 services, to answer as much. */
import type { Family } from '../../model/ip.ts';
import { NLM_F_DUMP } from '../../netlink/codec.ts';
import type { TablePlace } from '../../netlink/nftables/message.ts';
import { decodeRule, getChain, getRules } from '../../netlink/nftables/objects.ts';
import { NETLINK_NETFILTER } from '../../netlink/socket.ts';
import { requestOnce } from '../../netlink/request.ts';
import { IPTABLES_TABLES } from './kernelTables.ts';

export interface NftLook {
  hasChain(table: string, chain: string): boolean;
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
    countRules: (most) => {
      let count = 0;
      for (const table of IPTABLES_TABLES) if (count <= most) count += countIn(placeOf(table), most - count);
      return count;
    },
  };
}

/** iptables gives every rule a counter. A rule without one is a rule of nft, which iptables would not print. */
function countIn(place: TablePlace, most: number): number {
  const request = getRules(place);
  const reply = requestOnce(NETLINK_NETFILTER, { ...request, flags: request.flags | NLM_F_DUMP });
  let count = 0;
  for (const { payload } of typeof reply === 'object' && reply.kind === 'answered' ? reply.messages : []) {
    if (decodeRule(payload).expressions.some(({ kind }) => kind === 'counter')) count++;
    if (count > most) break;
  }
  return count;
}
