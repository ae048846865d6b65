/** Ranges of addresses: sets of them take none that lies within another. */
import { type Cidr, cidrContains, type Ip, prefixOf } from '../../model/ip.ts';

/** Those that say it all. */
export function withoutCovered(ranges: Iterable<Cidr>): readonly Cidr[] {
  const wideFirst = [...new Set(ranges)].sort((a, b) => prefixOf(a) - prefixOf(b));
  const kept: Cidr[] = [];
  for (const range of wideFirst) if (!kept.some((wider) => covers(wider, range))) kept.push(range);
  return kept;
}

/** Of two networks that have an address in common, one lies within the other. */
export function overlap(a: Cidr, b: Cidr): boolean {
  return prefixOf(a) < prefixOf(b) ? covers(a, b) : covers(b, a);
}

/** A canonical range begins with an address. */
function covers(wider: Cidr, range: Cidr): boolean {
  return cidrContains(wider, range.slice(0, range.indexOf('/')) as Ip);
}
