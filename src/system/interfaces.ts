/** The addresses of this machine. */
import { networkInterfaces } from 'node:os';
import { type Family, type Ip, familyOf, parseIp } from '../model/ip.ts';

interface LocalAddress {
  readonly interface: string;
  readonly ip: Ip;
  readonly family: Family;
  readonly loopback: boolean;
}

/** What the operating system is asked; tests give their own. */
export type InterfaceLister = typeof networkInterfaces;

/** In the order of interfaces and of addresses on them. Interfaces that are down are left out. */
export function interfaceAddresses(list: InterfaceLister = networkInterfaces): readonly LocalAddress[] {
  return Object.entries(list()).flatMap(([name, addresses]) =>
    (addresses ?? []).flatMap(({ address, internal }) => {
      const ip = parseIp(address.replace(/%.*$/, ''));
      return ip ? [{ interface: name, ip, family: familyOf(ip), loopback: internal }] : [];
    }),
  );
}

export function localIps(family: Family, list: InterfaceLister = networkInterfaces): readonly Ip[] {
  const ips = interfaceAddresses(list).filter((address) => address.family === family);
  return [...new Set(ips.map(({ ip }) => ip))];
}
