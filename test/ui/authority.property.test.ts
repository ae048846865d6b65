import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseIp } from '../../src/model/ip.ts';
import { parseAuthority } from '../../src/ui/authority.ts';

const port = fc.option(fc.nat(65_535), { nil: undefined });
const withPort = (host: string, number: number | undefined): string =>
  number === undefined ? host : `${host}:${number}`;

test('any IPv4 address is one, with and without a port', () => {
  fc.assert(
    fc.property(fc.ipV4(), port, (ip, number) => {
      expect(parseAuthority(withPort(ip, number))).toEqual({ ip });
    }),
  );
});

test('any IPv6 address in brackets is one', () => {
  fc.assert(
    fc.property(fc.ipV6(), port, (ip, number) => {
      expect(parseAuthority(withPort(`[${ip.toUpperCase()}]`, number))).toEqual({ ip: parseIp(ip) });
    }),
  );
});

test('any domain is a name, in small letters', () => {
  fc.assert(
    fc.property(fc.domain(), port, (domain, number) => {
      expect(parseAuthority(withPort(domain.toUpperCase(), number))).toEqual({ name: domain.toLowerCase() });
    }),
  );
});

test('whatever it is given, it throws nothing, and an address it returns was written there', () => {
  const words = fc.constantFrom(
    '127.0.0.1',
    '[::1]',
    'a',
    '.',
    ':',
    '@',
    '[',
    ']',
    '%25',
    '/',
    '#',
    '80',
    ' ',
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(words).map((list) => list.join('')),
      ),
      (text) => {
        const host = parseAuthority(text);
        if (host && 'ip' in host)
          expect(parseIp(text.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1')) ?? parseIp(text)).toBe(
            host.ip,
          );
        if (host && 'name' in host) expect(text.toLowerCase().startsWith(host.name)).toBe(true);
      },
    ),
  );
});

test.each([
  '',
  ':',
  ':80',
  '::1',
  '[::1',
  '::1]',
  '[127.0.0.1]',
  '[fe80::1%eth0]:80',
  'user@127.0.0.1',
  '127.0.0.1@evil.example',
  '127.0.0.1:80:80',
  '127.0.0.1:65536',
  '127.0.0.1:',
  '127.0.0.1/',
  ' 127.0.0.1',
  'evil.example#127.0.0.1',
])('%o is no host', (text) => expect(parseAuthority(text)).toBeUndefined());

test.each(['127.0.0.1.evil.example', '127.1', '2130706433', '0x7f000001', 'localhost.evil.example'])(
  '%s is a name, and no address',
  (name) => expect(parseAuthority(name)).toEqual({ name }),
);
