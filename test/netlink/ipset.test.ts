import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MessageWriter, decodeMessages } from '../../src/netlink/codec.ts';
import {
  addEntry,
  createSet,
  deleteEntry,
  swapSets,
  testEntry,
  headerRequest,
  decodeSetType,
  listRequest,
  decodeRevision,
  typeRequest,
  type IpsetEntry,
  type IpsetType,
  writeEntry,
} from '../../src/netlink/ipset.ts';
import { type Cidr, type Ip, parseCidr, parseIp } from '../../src/model/ip.ts';
import { requestHex, unhex } from '../system/support/bytes.ts';
import { decodeEntry, decodeIpset } from './support/readers.ts';

const ip = (text: string): Ip => parseIp(text) ?? ('' as Ip);
const net = (text: string): Cidr => parseCidr(text) ?? ('' as Cidr);
/** nfgenmsg and protocol 6 are at the start of each. */
const HEAD = '01000000 00000000 02000000 05000100 06000000';

describe('golden bytes', () => {
  it('ipset create A hash:ip family inet hashsize 1024 maxelem 65536', () => {
    const spec = { type: 'hash:ip', family: 'IPv4', hashSize: 1024, maxElements: 65_536 } as const;
    expect(requestHex(createSet('A', spec, 5))).toBe(
      [
        `54000000 02060004 ${HEAD}`, //                      CREATE, create
        '06000200 41000000', //                              SETNAME "A"
        '0c000300 68617368 3a697000', //                     TYPENAME "hash:ip"
        '05000400 05000000 05000500 02000000', //            REVISION 5, FAMILY inet
        '14000780 08001240 00000400 08001340 00010000', //   DATA { HASHSIZE, MAXELEM }, big endian and marked so
      ].join(' '),
    );
  });

  it('ipset create P bitmap:port range 0-65535', () => {
    expect(requestHex(createSet('P', { type: 'bitmap:port', from: 0, to: 65_535 }, 3))).toBe(
      [
        `58000000 02060004 ${HEAD} 06000200 50000000`,
        '10000300 6269746d 61703a70 6f727400 05000400 03000000 05000500 00000000',
        '14000780 06000440 00000000 06000540 ffff0000', //   DATA { PORT_FROM 0, PORT_TO 65535 }
      ].join(' '),
    );
  });

  it('ipset test A 10.0.0.1,tcp:80', () => {
    const entry = { type: 'hash:ip,port', ip: ip('10.0.0.1'), protocol: 'TCP', port: 80 } as const;
    expect(requestHex(testEntry('A', entry))).toBe(
      [
        `44000000 0b060002 ${HEAD} 06000200 41000000`, //    TEST
        '20000780 0c000180 08000140 0a000001 06000440 00500000 05000700 06000000',
      ].join(' '),
    );
  });

  it('what kind of set A is', () => {
    expect(requestHex(headerRequest('A'))).toBe(`24000000 0c060000 ${HEAD} 06000200 41000000`);
    const answer =
      '02000000 05000100 06000000 06000200 41000000 0c000300 68617368 3a697000 05000400 05000000';
    expect(decodeSetType(unhex(answer))).toBe('hash:ip');
  });

  it('ipset add A 10.0.0.1,tcp:80,192.0.2.0/24', () => {
    const entry = { ip: ip('10.0.0.1'), protocol: 'TCP', port: 80, net: net('192.0.2.0/24') } as const;
    expect(requestHex(addEntry('A', { type: 'hash:ip,port,net', ...entry }))).toBe(
      [
        `58000000 09060002 ${HEAD} 06000200 41000000`, //    ADD, exclusively
        '34000780 0c000180 08000140 0a000001', //            DATA { IP { IPV4 }
        '06000440 00500000 05000700 06000000', //            PORT 80, PROTO 6
        '0c001480 08000140 c0000200 05001500 18000000', //   IP2 { IPV4 }, CIDR2 24 }
      ].join(' '),
    );
  });

  it('ipset del A fd00::1,sctp:80', () => {
    const entry = { ip: ip('fd00::1'), protocol: 'SCTP', port: 80 } as const;
    expect(requestHex(deleteEntry('A', { type: 'hash:ip,port', ...entry }))).toBe(
      [
        `50000000 0a060002 ${HEAD} 06000200 41000000`,
        '2c000780 18000180 14000240 fd000000 00000000 00000000 00000001',
        '06000440 00500000 05000700 84000000',
      ].join(' '),
    );
  });

  it('ipset swap A B', () => {
    expect(requestHex(swapSets('A', 'B'))).toBe(
      `2c000000 06060000 ${HEAD} 06000200 41000000 06000300 42000000`,
    );
  });

  it('ipset list A -terse', () => {
    expect(requestHex(listRequest('A', 4))).toBe(
      `2c000000 07060000 ${HEAD} 06000200 41000000 08000640 00000004`,
    );
  });

  it('which revision of hash:ip for IPv6', () => {
    expect(requestHex(typeRequest('hash:ip', 'IPv6'))).toBe(
      `30000000 0d060000 ${HEAD} 0c000300 68617368 3a697000 05000500 0a000000`,
    );
  });

  it('a set of two messages', () => {
    const first = unhex(`02000000 05000100 06000000 06000200 41000000 0c000300 68617368 3a697000
      05000500 02000000 05000400 05000000
      2c000780 08001240 00000400 08001340 00010000 08001940 00000001 08001a40 00000060 08001840 00000002
      14000880 10000780 0c000180 08000140 0a000001`);
    const second = unhex(
      '02000000 05000100 06000000 06000200 41000000 14000880 10000780 0c000180 08000140 0a000002',
    );
    expect(decodeIpset([{ payload: first }, { payload: second }])).toEqual({
      name: 'A',
      type: 'hash:ip',
      revision: 5,
      family: 'IPv4',
      hashSize: 1024,
      maxElements: 65_536,
      references: 1,
      elements: 2,
      entries: [
        { type: 'hash:ip', ip: '10.0.0.1' },
        { type: 'hash:ip', ip: '10.0.0.2' },
      ],
    });
  });
});

describe('what was written is read back', () => {
  const anyIp = fc.oneof(fc.ipV4(), fc.constantFrom('fd00::1', '2001:db8::', '::')).map(ip);
  const ipPort = {
    ip: anyIp,
    protocol: fc.constantFrom('TCP' as const, 'UDP' as const, 'SCTP' as const),
    port: fc.nat(65_535),
  };
  const anyNet = fc
    .tuple(fc.ipV4(), fc.integer({ min: 1, max: 32 }))
    .map(([address, bits]) => net(`${address}/${bits}`));
  const entries: fc.Arbitrary<IpsetEntry> = fc.oneof(
    fc.record({ type: fc.constant('hash:ip' as const), ip: anyIp }),
    fc.record({ type: fc.constant('bitmap:port' as const), port: fc.nat(65_535) }),
    fc.record({ type: fc.constant('hash:ip,port' as const), ...ipPort }),
    fc.record({ type: fc.constant('hash:ip,port,ip' as const), ...ipPort, secondIp: anyIp }),
    fc.record({ type: fc.constant('hash:ip,port,net' as const), ...ipPort, net: anyNet }),
  );

  it('entries of every type', () => {
    fc.assert(
      fc.property(entries, (entry) => {
        const bytes = new MessageWriter()
          .message({ type: 1, flags: 0, sequence: 1 }, (writer) => writeEntry(writer, entry))
          .finish();
        const [message] = decodeMessages(bytes);
        expect(decodeEntry(entry.type, message?.payload ?? new Uint8Array())).toEqual(entry);
      }),
    );
  });
});

describe('bounds', () => {
  const address = '0c000180 08000140 0a000001';
  it.each<[string, IpsetType, string]>([
    ['no address', 'hash:ip', ''],
    ['an address of neither family', 'hash:ip', '0c000180 08000340 0a000001'],
    ['a short address', 'hash:ip', '0a000180 06000140 0a000000'],
    ['no port', 'hash:ip,port', `${address} 05000700 06000000`],
    ['no protocol', 'hash:ip,port', `${address} 06000440 00500000`],
    ['a protocol of no service', 'hash:ip,port', `${address} 06000440 00500000 05000700 01000000`],
    ['no second address', 'hash:ip,port,ip', `${address} 06000440 00500000 05000700 06000000`],
    [
      'a prefix that is too long',
      'hash:ip,port,net',
      `${address} 06000440 00500000 05000700 06000000 0c001480 08000140 c0000200 05001500 21000000`,
    ],
    ['a port of four bytes', 'bitmap:port', '08000440 00000050'],
  ])('%s', (_, type, text) => {
    expect(() => decodeEntry(type, unhex(text))).toThrow(
      expect.objectContaining({ code: 'NETLINK_MALFORMED' }),
    );
  });

  it.each([
    ['entries before their set', () => decodeIpset([{ payload: unhex('02000000 06000200 41000000') }])],
    ['a stub', () => decodeIpset([{ payload: unhex('0200') }])],
    ['a type without revision', () => decodeRevision(unhex('02000000'))],
  ])('%s', (_, act) => {
    expect(act).toThrow(expect.objectContaining({ code: 'NETLINK_MALFORMED' }));
  });
});
