/** The addresses of the machine that plans, in place of the node's. */
import { localIps } from '../system/interfaces.ts';
import { cidrContains, type Family, type Ip, isLoopback, parseCidr } from '../model/ip.ts';

const LINK_LOCAL = parseCidr('fe80::/10');

/** On which node ports answer, and which need no device: not those that are good on one link only. */
export function nodeIpsOf(family: Family): readonly Ip[] {
  return localIps(family)
    .filter((ip) => !isLoopback(ip) && !(LINK_LOCAL && cidrContains(LINK_LOCAL, ip)))
    .sort();
}
