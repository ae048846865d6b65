/** NF_NAT_RANGE_* of linux/netfilter/nf_nat.h, by the words of nft. */
import { flagNames } from '../names.ts';

export type NatFlag = 'random' | 'persistent' | 'fully-random';

export const NAT_FLAGS = flagNames<NatFlag>({ random: 4, persistent: 8, 'fully-random': 16 });

/** The kernel adds these for the registers that it is given, and shows them. */
export const NF_NAT_RANGE_MAP_IPS = 1;
export const NF_NAT_RANGE_PROTO_SPECIFIED = 2;
