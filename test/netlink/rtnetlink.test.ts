import { describe, expect, it } from 'vitest';
import { addAddress, decodeAddress, decodeLink, newLink } from '../../src/netlink/rtnetlink.ts';
import { type Ip, parseIp } from '../../src/model/ip.ts';
import { requestHex, unhex } from '../system/support/bytes.ts';

const ip = (text: string): Ip => parseIp(text) ?? ('' as Ip);

describe('golden bytes', () => {
  it('ip link add kube-ipvs0 type dummy', () => {
    expect(requestHex(newLink('kube-ipvs0', 'dummy'))).toBe(
      [
        '40000000 10000006 01000000 00000000', //   NEWLINK, create exclusively
        '00000000 00000000 00000000 00000000', //   ifinfomsg
        '0f000300 6b756265 2d697076 73300000', //   IFNAME
        '10001280 0a000100 64756d6d 79000000', //   LINKINFO { KIND "dummy" }
      ].join(' '),
    );
  });

  it('ip addr add 10.96.0.1/32 dev INDEX 7', () => {
    expect(requestHex(addAddress(7, ip('10.96.0.1')))).toBe(
      '28000000 14000006 01000000 00000000 02200000 07000000 08000200 0a600001 08000100 0a600001',
    );
  });

  it('a link of no kind', () => {
    const payload = unhex('00000403 01000000 49000100 00000000 07000300 6c6f0000');
    expect(decodeLink(payload)).toEqual({ index: 1, name: 'lo', kind: undefined, flags: 0x10049 });
  });
});

describe('bounds', () => {
  it.each([
    ['a link without a name', () => decodeLink(new Uint8Array(16))],
    ['a stub of a link', () => decodeLink(new Uint8Array(8))],
    ['an address without one', () => decodeAddress(unhex('02200000 07000000'))],
    [
      'an IPv4 address of 16 bytes',
      () => decodeAddress(unhex(`02200000 07000000 14000100 ${'00'.repeat(16)}`)),
    ],
    ['a stub of an address', () => decodeAddress(unhex('0220'))],
  ])('%s', (_, act) => {
    expect(act).toThrow(expect.objectContaining({ code: 'NETLINK_MALFORMED' }));
  });

  it('an address of another family is not ours to read', () => {
    expect(decodeAddress(unhex('2d080000 01000000 05000200 08000000'))).toBeUndefined();
  });
});
