import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Cidr, cidrContains, type Ip, prefixOf } from '../../../../src/model/ip.ts';
import { withoutCovered } from '../../../../src/modes/nftables/rules/compile.ts';
import { cidr } from '../../../plan/given.ts';

test.each([
  ['10.0.0.0/8 10.1.0.0/16 10.1.2.3/32', '10.0.0.0/8'],
  ['10.1.0.0/16 10.0.0.0/8', '10.0.0.0/8'],
  ['10.1.0.0/16 10.1.0.0/16 10.2.0.0/16', '10.1.0.0/16 10.2.0.0/16'],
  ['9.0.0.0/8 10.0.0.0/9 10.128.0.0/9 100.0.0.0/8', '9.0.0.0/8 10.0.0.0/9 10.128.0.0/9 100.0.0.0/8'],
  ['fd00::/16 fd00:1::/32 fd01::/16', 'fd00::/16 fd01::/16'],
])('%s: %s', (given, expected) => {
  expect(withoutCovered(given.split(' ').map(cidr)).join(' ')).toBe(expected);
});

test('what is left out lies within what is kept, and nothing that is kept within another', () => {
  const range = fc
    .tuple(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 0, max: 255 }), fc.integer({ min: 4, max: 32 }))
    .map(([a, b, prefix]) => cidr(`10.${a}.${b}.0/${prefix}`));
  const covers = (wide: Cidr, narrow: Cidr): boolean =>
    prefixOf(wide) <= prefixOf(narrow) && cidrContains(wide, narrow.slice(0, narrow.indexOf('/')) as Ip);
  fc.assert(
    fc.property(fc.array(range), (ranges) => {
      const kept = withoutCovered(ranges);
      for (const each of ranges) expect(kept.filter((wide) => covers(wide, each))).toHaveLength(1);
    }),
  );
});
