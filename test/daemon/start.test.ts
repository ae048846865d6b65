/** Pure functions of a start: which family is the primary one, and where the API server is dialled. */
import { expect, test } from 'vitest';
import { primaryFamily } from '../../src/daemon/leftOutFamilies.ts';
import { dialledAddresses } from '../../src/daemon/source.ts';
import { parseIp } from '../../src/model/ip.ts';

test.each([
  ['0.0.0.0', [], 'IPv4'],
  ['::', [], 'IPv4'],
  ['0.0.0.0', ['fd00::1', '192.0.2.1'], 'IPv6'],
  ['0.0.0.0', ['192.0.2.1', 'fd00::1'], 'IPv4'],
  ['::1', ['192.0.2.1'], 'IPv6'],
  ['192.0.2.7', ['fd00::1'], 'IPv4'],
] as const)('bind address %s, node addresses %j: primary family %s', (bind, ips, expected) => {
  expect(primaryFamily(bind, { ips: ips.flatMap((text) => parseIp(text) ?? []) })).toBe(expected);
});

test.each([
  ['https://203.0.113.1:6443', undefined, [{ ip: '203.0.113.1', port: 6443 }]],
  ['https://[2001:db8:0::1]/k8s', undefined, [{ ip: '2001:db8::1', port: 443 }]],
  ['http://203.0.113.1', undefined, [{ ip: '203.0.113.1', port: 80 }]],
  ['https://api.invalid', 'http://198.51.100.3:3128', [{ ip: '198.51.100.3', port: 3128 }]],
  ['https://localhost:6443', undefined, expect.arrayContaining([{ ip: '127.0.0.1', port: 6443 }])],
])('the API server %s by way of %s is dialled at', async (server, proxy, expected) => {
  const access = { server: new URL(server), proxy: proxy === undefined ? undefined : new URL(proxy) };
  expect(await dialledAddresses(access)).toEqual(expected);
});
