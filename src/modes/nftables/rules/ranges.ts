/** Ranges of addresses: sets of them take none that lies within another. */
import { type Cidr, cidrContains, type Ip, parseBytes, prefixOf } from '../../../model/ip.ts';

/**
 * Those that say it all, by where they begin. Two networks are apart, or one lies within the other; so in this order only
 * the last one that was kept can hold the next.
 */
export function withoutCovered(ranges: Iterable<Cidr>): readonly Cidr[] {
  const sorted = [...new Set(ranges)]
    .map((range) => ({ range, start: startOf(range), prefix: prefixOf(range) }))
    .sort((a, b) => (a.start < b.start ? -1 : a.start > b.start ? 1 : a.prefix - b.prefix));
  const kept: Cidr[] = [];
  let last: Cidr | undefined;
  for (const { range } of sorted) {
    if (last !== undefined && covers(last, range)) continue;
    kept.push(range);
    last = range;
  }
  return kept;
}

/** Texts of one family that sort like the addresses. */
function startOf(range: Cidr): string {
  let text = range.includes(':') ? '6' : '4';
  for (const byte of parseBytes(addressOf(range)) ?? []) text += byte.toString(16).padStart(2, '0');
  return text;
}

/** A canonical range begins with an address. */
function covers(wider: Cidr, range: Cidr): boolean {
  return cidrContains(wider, addressOf(range));
}

function addressOf(range: Cidr): Ip {
  return range.slice(0, range.indexOf('/')) as Ip;
}
