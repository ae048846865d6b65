/** The addresses of this machine. */
import { networkInterfaces } from 'node:os';
import { type Family, type Ip, familyOf, parseIp } from '../model/ip.ts';

/** What the operating system is asked; tests give their own. */
export type InterfaceLister = typeof networkInterfaces;

/** In the order of interfaces and of addresses on them, each once. Interfaces that are down are left out. */
export function localIps(family: Family, list: InterfaceLister = networkInterfaces): readonly Ip[] {
  const addresses = Object.values(list()).flatMap((each) => each ?? []);
  const ips = addresses.flatMap(({ address }) => parseIp(address.replace(/%.*$/, '')) ?? []);
  return [...new Set(ips.filter((ip) => familyOf(ip) === family))];
}
