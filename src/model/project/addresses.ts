/** Readers of addresses: what cannot be read is left out, with a warning. */
import { type Cursor, readText } from '../../text/cursor.ts';
import { quote } from '../../text/printable.ts';
import { type Cidr, cidrContains, type Ip, parseCidr, parseIp } from '../ip.ts';

export const NO_IPS: readonly Ip[] = [];
export const NO_CIDRS: readonly Cidr[] = [];

/** A missing or blank address is nothing; a bad one is nothing, with a warning. */
export function readIpLeniently(at: Cursor): Ip | undefined {
  const text = at.attempt('it is left out', readText) ?? '';
  if (text.trim() === '') return undefined;
  const ip = parseIp(text);
  if (ip === undefined) at.warn(`${quote(text)} is not an IP address`, 'an IP address');
  return ip;
}

/** Kubernetes trims these, and only these, before it reads them. */
export function readCidrLeniently(at: Cursor): Cidr | undefined {
  const text = (at.attempt('it is left out', readText) ?? '').trim();
  if (text === '') return undefined;
  const cidr = parseCidr(text);
  if (cidr === undefined) at.warn(`${quote(text)} is not a CIDR`, 'a CIDR such as 192.0.2.0/24');
  return cidr;
}

export const LINK_LOCAL = 'a link-local address';

const SPECIAL = [
  ['127.0.0.0/8', 'a loopback address'],
  ['::1/128', 'a loopback address'],
  ['0.0.0.0/32', 'the unspecified address'],
  ['::/128', 'the unspecified address'],
  ['169.254.0.0/16', LINK_LOCAL],
  ['fe80::/10', LINK_LOCAL],
  ['224.0.0.0/4', 'a multicast address'],
  ['ff00::/8', 'a multicast address'],
  ['255.255.255.255/32', 'the broadcast address'],
].map(([range = '', what]) => ({ cidr: parseCidr(range), what }));

// Every special range shows in the first characters; most addresses are spared the eight comparisons.
const PERHAPS_SPECIAL = /^(?:127\.|0\.|169\.|22|23|255\.|::|f[ef])/;

/**
 * What is special about an address that means something to every machine, so that no service may have it. The API server
 * checks this for endpoints and new external IPs, but not for a load balancer's addresses: one at 127.0.0.1 would take
 * over the node's loopback.
 */
export function specialAddress(ip: Ip): string | undefined {
  if (!PERHAPS_SPECIAL.test(ip)) return undefined;
  return SPECIAL.find(({ cidr }) => cidr !== undefined && cidrContains(cidr, ip))?.what;
}

/** `readIpLeniently`, and special addresses are left out too. */
export function readOrdinaryIp(at: Cursor): Ip | undefined {
  const ip = readIpLeniently(at);
  const special = ip === undefined ? undefined : specialAddress(ip);
  if (special === undefined) return ip;
  at.warn(`${ip} is ${special}`, 'an address that other machines can reach');
  return undefined;
}

/** What could be read, without repetitions. */
export function readEach<T extends Ip | Cidr>(
  items: readonly Cursor[],
  none: readonly T[],
  read: (at: Cursor) => T | undefined,
): readonly T[] {
  if (items.length === 0) return none;
  const found = new Set<T>();
  for (const item of items) {
    const value = read(item);
    if (value !== undefined) found.add(value);
  }
  return found.size === 0 ? none : [...found];
}
