/** Names and addresses of hosts, as they come in requests. Which are refused: access.test.ts. */
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
  const words = fc.constantFrom(...'127.0.0.1 [::1] a . : @ [ ] %25 / # 80'.split(' '), ' ');
  const texts = fc.oneof(
    fc.string(),
    fc.array(words).map((list) => list.join('')),
  );
  fc.assert(
    fc.property(texts, (text) => {
      const host = parseAuthority(text);
      if (host && 'ip' in host)
        expect(parseIp(text.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1')) ?? parseIp(text)).toBe(host.ip);
      if (host && 'name' in host) expect(text.toLowerCase().startsWith(host.name)).toBe(true);
    }),
  );
});
