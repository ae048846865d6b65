/**
 * The chains that iptables knows by name, as base chains of nf_tables: types, hooks and priorities of iptables-nft, which
 * makes each of them when the first rule is put into it.
 */
import type { BaseChain } from '../../../netlink/nftables/objects.ts';
import type { Table } from '../rules/rule.ts';

type Place = Pick<BaseChain, 'type' | 'hook' | 'priority'>;

/** enum nf_ip_hook_priorities of linux/netfilter_ipv4.h */
const MANGLE = -150;
const NAT_DESTINATION = -100;
const FILTER = 0;
const NAT_SOURCE = 100;

const BASE_CHAINS: Readonly<Record<Table, Readonly<Record<string, Place>>>> = {
  filter: {
    INPUT: { type: 'filter', hook: 'input', priority: FILTER },
    FORWARD: { type: 'filter', hook: 'forward', priority: FILTER },
    OUTPUT: { type: 'filter', hook: 'output', priority: FILTER },
  },
  nat: {
    PREROUTING: { type: 'nat', hook: 'prerouting', priority: NAT_DESTINATION },
    INPUT: { type: 'nat', hook: 'input', priority: NAT_SOURCE },
    OUTPUT: { type: 'nat', hook: 'output', priority: NAT_DESTINATION },
    POSTROUTING: { type: 'nat', hook: 'postrouting', priority: NAT_SOURCE },
  },
  mangle: {
    PREROUTING: { type: 'filter', hook: 'prerouting', priority: MANGLE },
    INPUT: { type: 'filter', hook: 'input', priority: MANGLE },
    FORWARD: { type: 'filter', hook: 'forward', priority: MANGLE },
    OUTPUT: { type: 'route', hook: 'output', priority: MANGLE },
    POSTROUTING: { type: 'filter', hook: 'postrouting', priority: MANGLE },
  },
};

/** `undefined`: any other chain. */
export function baseChainOf(table: Table, chain: string): BaseChain | undefined {
  const place = BASE_CHAINS[table][chain];
  return place && { ...place, policy: 'accept' };
}
