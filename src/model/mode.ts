/** The modes of the proxy; in lists, help and messages they come in this order. */
export const MODE_NAMES = ['iptables', 'ipvs', 'nftables'] as const;

export type ModeName = (typeof MODE_NAMES)[number];
