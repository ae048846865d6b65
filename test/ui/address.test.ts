import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseIp } from '../../src/model/ip.ts';
import { parseUiAddress } from '../../src/ui/address.ts';

test.each([
  ['8080', '127.0.0.1', 8080, true],
  [':8080', '127.0.0.1', 8080, true],
  ['localhost:8080', '127.0.0.1', 8080, true],
  ['127.1.2.3:0', '127.1.2.3', 0, true],
  ['[::1]:65535', '::1', 65_535, true],
  ['[::ffff:127.0.0.1]:80', '127.0.0.1', 80, true],
  ['0.0.0.0:80', '0.0.0.0', 80, false],
  ['[FD00::0:1]:80', 'fd00::1', 80, false],
])('the address of the page: %s', (text, host, port, isLoopback) => {
  expect(parseUiAddress(text)).toEqual({ host, port, isLoopback });
});

const NONE =
  ': x 65536 :65536 :-1 :+1 127.0.0.1 ::1:80 [::1] [127.0.0.1:80 node1:80 127.0.0.1:http http://127.0.0.1:80 127.0.0.1:80/';
test.each(['', ':8 ', ...NONE.split(' ')])('%o is none', (text) => {
  expect(parseUiAddress(text)).toBeUndefined();
});

test('whatever is written, only addresses of 127.0.0.0/8 and ::1 count as loopback', () => {
  const ipv6 = fc.ipV6().map((ip) => `[${ip}]`);
  const host = fc.oneof(fc.ipV4(), ipv6, fc.string(), fc.constant(''));
  fc.assert(
    fc.property(host, fc.oneof(fc.nat(70_000).map(String), fc.string()), (name, port) => {
      const address = parseUiAddress(`${name}:${port}`);
      if (!address) return;
      expect(parseIp(address.host)).toBe(address.host);
      expect(address.isLoopback).toBe(address.host === '::1' || address.host.startsWith('127.'));
    }),
  );
});
