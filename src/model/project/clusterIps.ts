/** Which cluster IP a Service has in each family. */
import { FAMILIES, type Family, familyOf, type Ip, parseIp } from '../ip.ts';
import type { Service } from '../objects.ts';
import { LINK_LOCAL, specialAddress } from './addresses.ts';
import type { Cursor } from './cursor.ts';
import { quote } from './quote.ts';
import { oneOf, readChoice, readText } from './read.ts';

/**
 * With `ipFamilies`, the entry of `clusterIPs` at the same index; without, `clusterIP` alone. A manifest may give
 * `clusterIP` alone in both cases: the API server would have copied it into the list.
 *
 * A service of which no cluster IP can be read is refused: it has nothing that it could be served at.
 */
export function readClusterIPs(spec: Cursor): Service['clusterIPs'] {
  const families = readFamilies(spec);
  const list = spec.list('clusterIPs');
  const addresses = families.length === 0 || list.length === 0 ? [spec.field('clusterIP')] : list;
  const found: Partial<Record<Family, Ip>> = {};
  for (const [index, at] of addresses.entries()) {
    const ip = at.attempt('it is left out', (part) => readClusterIP(part, families[index]));
    if (ip === undefined) continue;
    const family = familyOf(ip);
    if (families.length === 0 || families[index] === family) found[family] ??= ip;
  }
  if (Object.keys(found).length === 0) addresses.forEach((at, index) => readClusterIP(at, families[index]));
  return found;
}

type FamilyEntry = Family | 'unknown';

/** The first entry of a family counts. */
function readFamilies(spec: Cursor): readonly FamilyEntry[] {
  return spec.list('ipFamilies').map((item) => {
    const family = item.attempt('the cluster IP at this index is left out', (at) => {
      if (at.missing || at.value === '') at.refuse('is empty', oneOf(FAMILIES));
      return readChoice(at, FAMILIES, 'IPv4');
    });
    return family ?? 'unknown';
  });
}

function readClusterIP(at: Cursor, family: FamilyEntry | undefined): Ip | undefined {
  const text = readText(at);
  const ip = parseIp(text);
  if (ip === undefined) {
    at.refuse(`${quote(text)} is not an IP address`, 'an IP address or None');
    return undefined;
  }
  const special = specialAddress(ip);
  // A cluster may have its services' addresses in the link-local range; the other special ranges are the machine's.
  if (special !== undefined && special !== LINK_LOCAL) {
    at.refuse(`${ip} is ${special}`, 'an address that no machine has by itself');
  } else if (family === 'unknown') {
    at.refuse(`${ip} has no family in ipFamilies`, oneOf(FAMILIES));
  } else if (family !== undefined && familyOf(ip) !== family) {
    at.refuse(`${ip} is not ${family}`, `an ${family} address, as ipFamilies says`);
  }
  return ip;
}
