/** The addresses of this machine. */
import { networkInterfaces } from 'node:os';
import { cidrContains, type Family, type Ip, familyOf, isLoopback, parseCidr, parseIp } from '../model/ip.ts';

/** What the operating system is asked; tests give their own. */
export type InterfaceLister = typeof networkInterfaces;

/** In the order of interfaces and of addresses on them, each once. Interfaces that are down are left out. */
export function localIps(family: Family, list: InterfaceLister = networkInterfaces): readonly Ip[] {
  const addresses = Object.values(list()).flatMap((each) => each ?? []);
  const ips = addresses.flatMap(({ address }) => parseIp(address.replace(/%.*$/, '')) ?? []);
  return [...new Set(ips.filter((ip) => familyOf(ip) === family))];
}

const LINK_LOCAL = parseCidr('fe80::/10');

/** On which node ports answer, and which need no device: not those that are good on one link only. */
export function nodeIpsOf(family: Family): readonly Ip[] {
  return localIps(family)
    .filter((ip) => !isLoopback(ip) && !(LINK_LOCAL && cidrContains(LINK_LOCAL, ip)))
    .sort();
}
