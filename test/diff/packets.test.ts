import { describe, expect, test } from 'vitest';
import { edgesOf } from '../../src/diff/packets.ts';
import { parseCidr } from '../../src/model/ip.ts';

const LAST = 'ffff:ffff:ffff:ffff:ffff:ffff';

describe('the edges of a range', () => {
  test.each([
    ['192.0.2.0/24', ['192.0.1.255', '192.0.2.0', '192.0.2.255', '192.0.3.0']],
    ['192.0.2.7/32', ['192.0.2.6', '192.0.2.7', '192.0.2.7', '192.0.2.8']],
    ['0.0.0.0/0', []],
    ['0.0.0.0/8', ['0.255.255.255', '1.0.0.0']],
    ['127.0.0.0/8', ['126.255.255.255', '128.0.0.0']],
    ['2001:db8::/32', [`2001:db7:${LAST}`, '2001:db8::', `2001:db8:${LAST}`, '2001:db9::']],
  ])('%s', (range, edges) => {
    const cidr = parseCidr(range);
    expect(cidr && edgesOf(cidr)).toEqual(edges);
  });
});
