import { expect, test } from 'vitest';
import { primaryFamily } from '../../src/daemon/leftOutFamilies.ts';
import { parseIp } from '../../src/model/ip.ts';

test.each([
  ['0.0.0.0', [], 'IPv4'],
  ['::', [], 'IPv4'],
  ['0.0.0.0', ['fd00::1', '192.0.2.1'], 'IPv6'],
  ['0.0.0.0', ['192.0.2.1', 'fd00::1'], 'IPv4'],
  ['::1', ['192.0.2.1'], 'IPv6'],
  ['192.0.2.7', ['fd00::1'], 'IPv4'],
] as const)('bind address %s, node addresses %j: %s', (bind, ips, expected) => {
  expect(primaryFamily(bind, { ips: ips.flatMap((text) => parseIp(text) ?? []) })).toBe(expected);
});
