/** Which cluster IP a Service has in each family. */
import { FAMILIES, type Family, familyOf, type Ip, parseIp } from '../ip.ts';
import type { Service } from '../objects.ts';
import type { Cursor } from './cursor.ts';
import { quote } from './quote.ts';
import { oneOf, readChoice, readText } from './read.ts';

/**
 * With `ipFamilies`, the entry of `clusterIPs` at the same index; without, `clusterIP` alone. A manifest may give
 * `clusterIP` alone in both cases: the API server would have copied it into the list.
 */
export function readClusterIPs(spec: Cursor): Service['clusterIPs'] {
  const families = readFamilies(spec);
  const list = spec.list('clusterIPs');
  const addresses = families.length === 0 || list.length === 0 ? [spec.field('clusterIP')] : list;
  const found: Partial<Record<Family, Ip>> = {};
  for (const [index, at] of addresses.entries()) {
    const ip = readClusterIP(at, families[index]);
    if (ip === undefined) continue;
    const family = familyOf(ip);
    if (families.length === 0 || families[index] === family) found[family] ??= ip;
  }
  return found;
}

function readFamilies(spec: Cursor): readonly Family[] {
  const families = spec.list('ipFamilies').map((at) => {
    if (at.missing || at.value === '') at.refuse('is empty', oneOf(FAMILIES));
    return readChoice(at, FAMILIES, 'IPv4');
  });
  if (new Set(families).size < families.length) {
    spec.field('ipFamilies').refuse('names a family twice', 'each family once');
  }
  return families;
}

function readClusterIP(at: Cursor, family: Family | undefined): Ip | undefined {
  const text = readText(at);
  const ip = parseIp(text);
  if (ip === undefined) {
    at.refuse(`${quote(text)} is not an IP address`, 'an IP address or None');
  } else if (family !== undefined && familyOf(ip) !== family) {
    at.refuse(`${ip} is not ${family}`, `an ${family} address, as ipFamilies says`);
  }
  return ip;
}
