/** The matches and targets of iptables that Junction's rules use, and which kernel module brings each. Pure. */
import type { Family } from '../../model/ip.ts';
import type { Need } from './check.ts';

export interface Extension {
  /** `match recent`, as `-m recent`; `target DNAT`, as `-j DNAT`. */
  readonly name: string;
  readonly modules: Readonly<Record<Family, string>>;
  readonly needed: Need;
}

function extension(name: string, module: string, needed: Need = 'always'): Extension {
  return { name, modules: { IPv4: module, IPv6: module }, needed };
}

export const COMMENT = extension('match comment', 'xt_comment');
export const ADDRESS_TYPE = extension('match addrtype', 'xt_addrtype');
export const CONNTRACK = extension('match conntrack', 'xt_conntrack');
export const MARK_MATCH = extension('match mark', 'xt_mark');
export const STATISTIC = extension('match statistic', 'xt_statistic');
export const TCP = extension('match tcp', 'xt_tcpudp');
export const UDP = extension('match udp', 'xt_tcpudp');
export const SCTP = extension('match sctp', 'xt_sctp', 'for Services of protocol SCTP');
export const RECENT = extension('match recent', 'xt_recent', 'for Services with sessionAffinity: ClientIP');
export const PHYSDEV = extension('match physdev', 'xt_physdev', 'for Services with external IPs');
/** In IPVS mode the rule is not one Service's: the kernel takes it with all the others, or none. */
export const PHYSDEV_FOR_ALL: Extension = {
  ...PHYSDEV,
  needed: 'for Services with external IPs, the first of which would keep all rules from being written',
};
/** Once the kernel has counters, rules count into them: then the match must be there too. */
export const NFACCT = extension('match nfacct', 'xt_nfacct');
export const SET = extension('match set', 'xt_set');
export const VIRTUAL_SERVER = extension(
  'match ipvs',
  'xt_ipvs',
  'for load balancers with source ranges that leave the node out',
);
export const MARK_TARGET = extension('target MARK', 'xt_mark');
export const DNAT = extension('target DNAT', 'xt_nat');
/** xt_MASQUERADE since kernel 5.2; before, one for each family, for which kernels since then have an alias. */
export const MASQUERADE: Extension = {
  ...extension('target MASQUERADE', ''),
  modules: { IPv4: 'ipt_MASQUERADE', IPv6: 'ip6t_MASQUERADE' },
};
export const REJECT: Extension = {
  ...extension('target REJECT', ''),
  modules: { IPv4: 'ipt_REJECT', IPv6: 'ip6t_REJECT' },
};
