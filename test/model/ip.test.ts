import { BlockList, isIP, isIPv4 } from 'node:net';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  cidrContains,
  familyOf,
  hostCidr,
  hostPort,
  ipOfBytes,
  isLoopback,
  parseBytes,
  parseCidr,
  parseIp,
  prefixOf,
} from '../../src/model/ip.ts';
import { cidr, ip } from '../plan/given.ts';

describe('an address is read leniently and printed canonically', () => {
  test.each([
    ['10.0.0.1', '10.0.0.1'],
    // Leading zeros are decimal, never octal.
    ['172.30.0.041', '172.30.0.41'],
    ['192.168.099.022', '192.168.99.22'],
    ['010.000.000.001', '10.0.0.1'],
    // RFC 5952: lower case, no leading zeros, the longest run of zeros once, the first of equals, never a single one.
    ['::', '::'],
    ['0:0:0:0:0:0:0:0', '::'],
    ['FD00::00A1', 'fd00::a1'],
    ['2001:0db8:0000:0000:0000:0000:0002:0001', '2001:db8::2:1'],
    ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
    ['2001:db8::1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
    ['2001:0:0:1:0:0:0:1', '2001:0:0:1::1'],
    ['2001:db8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
    ['1:0:0:0:0:0:0:0', '1::'],
    ['0:0:0:0:0:0:1:0', '::1:0'],
    ['64:ff9b::192.0.2.33', '64:ff9b::c000:221'],
    // An IPv4-mapped literal is an IPv4 address.
    ['::ffff:1.2.3.4', '1.2.3.4'],
    ['::FFFF:102:304', '1.2.3.4'],
    ['0:0:0:0:0:ffff:1.2.3.004', '1.2.3.4'],
    ['::1.2.3.4', '::102:304'],
  ])('%s is %s', (text, canonical) => expect(parseIp(text)).toBe(canonical));

  test.each([
    '',
    '1.2.3',
    '1.2.3.256',
    '1.2.3.4\n',
    '1.2.3.0x4',
    '1.2.3.4/24',
    '١.٢.٣.٤',
    '1::2::3',
    '1:2:3:4:5:6:7::8',
    'fe80::1%eth0',
    '[::1]',
    'localhost',
    'None',
  ])('%j is no address', (text) => expect(parseIp(text)).toBeUndefined());
});

describe('a CIDR is masked', () => {
  test.each([
    ['1.2.3.4/28', '1.2.3.0/28'],
    ['203.0.113.000/025', '203.0.113.0/25'],
    ['1.2.3.4/0', '0.0.0.0/0'],
    ['255.255.255.255/9', '255.128.0.0/9'],
    ['FD00:1:2:3:4::/33', 'fd00:1::/33'],
    ['fd00::1/0', '::/0'],
    ['::ffff:1.2.3.4/120', '1.2.3.0/24'],
  ])('%s is %s', (text, canonical) => expect(parseCidr(text)).toBe(canonical));

  test.each([
    '1.2.3.4',
    '1.2.3.4/33',
    '1.2.3.4/-1',
    '1.2.3.4/',
    '1.2.3.4/8/8',
    'fd00::/129',
    '::ffff:1.2.3.4/95',
    'primary',
  ])('%j is no CIDR', (text) => expect(parseCidr(text)).toBeUndefined());
});

describe('small questions', () => {
  test.each([
    ['10.0.0.0/8', '10.255.0.1', true],
    ['10.0.0.0/8', '11.0.0.0', false],
    ['0.0.0.0/0', '1.2.3.4', true],
    ['0.0.0.0/0', '::1', false],
    ['::/0', '1.2.3.4', false],
    ['1.2.3.4/32', '1.2.3.4', true],
    ['1.2.3.4/31', '1.2.3.6', false],
    ['fd00:244::/32', 'fd00:244:1::9', true],
    ['fd00:244::/32', 'fd00:245::9', false],
  ])('%s contains %s: %s', (range, address, expected) => {
    expect(cidrContains(cidr(range), ip(address))).toBe(expected);
  });

  test.each([
    ['127.0.0.1', true],
    ['::1', true],
    ['::ffff:127.0.0.1', true],
    ['128.0.0.1', false],
    ['::2', false],
  ])('%s is a loopback address: %s', (address, expected) => expect(isLoopback(ip(address))).toBe(expected));

  test('ports are joined, with brackets for IPv6', () => {
    expect(hostPort(ip('10.0.0.1'), 80)).toBe('10.0.0.1:80');
    expect(hostPort(ip('FD00:0::1'), 80)).toBe('[fd00::1]:80');
  });

  test('one address as a range', () => {
    expect(hostCidr(ip('10.0.0.1'))).toBe('10.0.0.1/32');
    expect(hostCidr(ip('fd00::1'))).toBe('fd00::1/128');
  });
});

const octets = fc.array(fc.integer({ min: 0, max: 255 }), { minLength: 4, maxLength: 4 });
const group = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 0xffff }));
const groups = fc.array(group, { minLength: 8, maxLength: 8 });
const textOfIpv6 = groups.map((all) => all.map((each) => each.toString(16)).join(':'));
const address = fc.oneof(
  octets.map((all) => all.join('.')),
  fc.ipV6(),
  textOfIpv6,
);

describe('for every address', () => {
  test('what is printed is read as itself', () => {
    fc.assert(
      fc.property(address, (text) => {
        const canonical = ip(text);
        expect(parseIp(canonical)).toBe(canonical);
        expect(parseBytes(canonical)).toEqual(parseBytes(text));
      }),
    );
  });

  test('node reads the canonical form, and gives it the same family', () => {
    fc.assert(
      fc.property(address, (text) => {
        const canonical = ip(text);
        expect(isIP(canonical)).toBe(familyOf(canonical) === 'IPv4' ? 4 : 6);
      }),
    );
  });

  test('zeros in front of octets change nothing', () => {
    fc.assert(
      fc.property(octets, fc.array(fc.nat(5), { minLength: 4, maxLength: 4 }), (all, zeros) => {
        const sloppy = all.map((each, index) => '0'.repeat(zeros[index] ?? 0) + each).join('.');
        expect(parseIp(sloppy)).toBe(all.join('.'));
      }),
    );
  });

  test('garbage is an address exactly if node says so, leading zeros aside', () => {
    const character = fc.constantFrom(...'0123456789abcdefF.:/ %[]-');
    fc.assert(
      fc.property(fc.string({ unit: character, maxLength: 20 }), (text) => {
        const stripped = text.replaceAll(/(^|[.:])0+(?=[\da-f]+([.:]|$))/gi, '$1');
        expect(parseIp(text) !== undefined).toBe(isIP(stripped.replace(/%.*/, '!')) !== 0);
      }),
    );
  });
});

describe('for every range', () => {
  const ranges = address.chain((text) =>
    fc.tuple(fc.constant(text), fc.nat(isIPv4(ip(text)) ? 32 : 128), address),
  );

  test('it is stable, and holds what a block list of node holds', () => {
    fc.assert(
      fc.property(ranges, ([text, prefix, other]) => {
        const range = cidr(`${ip(text)}/${prefix}`);
        expect(parseCidr(range)).toBe(range);
        expect(prefixOf(range)).toBe(prefix);
        const list = new BlockList();
        list.addSubnet(ip(text), prefix, familyOf(range) === 'IPv4' ? 'ipv4' : 'ipv6');
        for (const each of [ip(text), ip(other)]) {
          if (familyOf(each) !== familyOf(range)) {
            expect(cidrContains(range, each)).toBe(false);
            continue;
          }
          const family = familyOf(each) === 'IPv4' ? 'ipv4' : 'ipv6';
          expect(cidrContains(range, each)).toBe(list.check(each, family));
        }
      }),
    );
  });
});

describe('an address that is canonical already is taken as it is', () => {
  const word = fc.constantFrom('0', '00', '1', 'ff', 'FF', 'ffff', '0abc', 'abcd', '12345', '1.2.3.4', '');
  const words = fc.array(word, { maxLength: 9 }).map((list) => list.join(':'));
  const text = fc.oneof(
    words,
    fc.tuple(words, words).map(([head, tail]) => `${head}::${tail}`),
    fc.ipV6(),
  );

  test('and no other text is: by way of its bytes it would be the same', () => {
    const byBytes = (from: string): string | undefined => {
      const bytes = parseBytes(from);
      return bytes && ipOfBytes(bytes);
    };
    fc.assert(
      fc.property(text, (given) => {
        expect(parseIp(given)).toBe(byBytes(given));
      }),
    );
  });

  test('and so is a CIDR', () => {
    const zeros = fc.integer({ min: 0, max: 8 });
    fc.assert(
      fc.property(groups, zeros, fc.nat(130), (all, kept, prefix) => {
        const some = all.map((each, index) => (index < kept ? each : 0));
        const long = some.map((each) => each.toString(16).padStart(4, '0')).join(':');
        const short = parseIp(long) ?? '';
        fc.pre(short.includes(':')); // an IPv4-mapped address is an IPv4 one when it is short, with a prefix that counts otherwise
        expect(parseCidr(`${short}/${prefix}`)).toBe(parseCidr(`${long}/${prefix}`));
        expect(parseCidr(`${short}/0${prefix}`)).toBe(parseCidr(`${long}/${prefix}`));
      }),
    );
  });
});
