import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeAttributes } from '../support/attributes.ts';
import { ipBytes, rangeOf, writeIp } from '../../../src/netlink/inet.ts';
import { ElementList, type SetElement, decodeElements } from '../../../src/netlink/nftables/elements.ts';
import { elementList } from './listOf.ts';
import { sent } from './support/messages.ts';
import { type Cidr, type Ip, parseCidr, parseIp } from '../../../src/model/ip.ts';
import { unhex } from '../../system/support/bytes.ts';

function read(elements: ElementList): readonly SetElement[] {
  return sent({ kind: 'addElements', family: 'ip', table: 't', set: 's', elements }).flatMap(
    (payload) => decodeElements(payload).elements,
  );
}

function numbered(count: number): ElementList {
  const list = new ElementList();
  for (let index = 0; index < count; index++) list.begin().index(index).comment(`number ${index}`).end();
  return list;
}

describe('fields', () => {
  it('of a concatenation are padded, and a single one is not', () => {
    const list = new ElementList();
    list.begin().port(80).data().protocol('UDP').end();
    list
      .begin()
      .protocol('SCTP')
      .port(80)
      .data()
      .port(443)
      .ip('10.0.0.1' as Ip)
      .end();
    expect(read(list)).toEqual([
      { key: unhex('0050'), data: unhex('11') },
      { key: unhex('84000000 00500000'), data: unhex('01bb0000 0a000001') },
    ]);
  });
});

describe('comments', () => {
  it.each([
    ['ASCII', 'shop/api:http', 'shop/api:http'],
    ['other characters', 'größe', 'größe'],
    ['none', '', ''],
    ['128 bytes', 'x'.repeat(128), 'x'.repeat(128)],
    ['more bytes than nft reads', 'x'.repeat(200), 'x'.repeat(128)],
    ['a character across the limit', `${'x'.repeat(127)}ö`, 'x'.repeat(127)],
  ])('%s', (_, comment, expected) => {
    const list = new ElementList();
    list.begin().port(1).comment(comment).end();
    list.begin().port(2).comment('next').end();
    expect(read(list)).toEqual([
      { key: unhex('0001'), comment: expected },
      { key: unhex('0002'), comment: 'next' },
    ]);
  });
});

it('comments may be repeated, also while the buffer grows', () => {
  const list = new ElementList(8);
  const comments = ['a', 'a', 'größe', 'größe', 'a', '', '', 'x'.repeat(128), 'x'.repeat(128)];
  for (const [index, comment] of comments.entries()) list.begin().port(index).comment(comment).end();
  expect(read(list).map(({ comment }) => comment)).toEqual(comments);
});

describe('many', () => {
  it('go into messages whose attribute of elements is as long as 16 bits can say', () => {
    const list = numbered(10_000);
    const messages = [...list.messages()];
    expect(Math.max(...messages.map(({ length }) => length + 4))).toBeLessThanOrEqual(0xffff);
    expect(messages.length).toBe(Math.ceil(list.length / 0xffff));
    expect(messages.flatMap((message) => decodeAttributes(message))).toHaveLength(10_000);
    expect(read(list).map(({ comment }) => comment)).toEqual(
      Array.from({ length: 10_000 }, (_, index) => `number ${index}`),
    );
  });
});

it('an element that no message takes is refused', () => {
  const list = new ElementList().begin().raw(new Uint8Array(70_000));
  expect(() => list.end()).toThrow('an element of');
  expect(() => elementList([{ key: new Uint8Array(70_000) }])).toThrow('an element of');
});

describe('addresses', () => {
  it('are the same bytes that the thorough reader finds', () => {
    const ips = fc.oneof(fc.ipV4(), fc.ipV6()).map((text) => parseIp(text) ?? ('::' as Ip));
    fc.assert(
      fc.property(ips, (ip) => {
        const bytes = new Uint8Array(18);
        writeIp(ip, bytes, 1);
        const expected = ipBytes(ip);
        expect([...bytes]).toEqual([0, ...expected, ...new Uint8Array(17 - expected.length)]);
      }),
    );
  });

  it.each([
    ['10.0.0.0/8', '0a000000', '0affffff', '0b000000'],
    ['192.0.2.7/32', 'c0000207', 'c0000207', 'c0000208'],
    ['10.1.2.0/23', '0a010200', '0a0103ff', '0a010400'],
    ['0.0.0.0/0', '00000000', 'ffffffff', undefined],
    ['240.0.0.0/4', 'f0000000', 'ffffffff', undefined],
    [
      'fd00:1::/33',
      'fd000001 00000000 00000000 00000000',
      'fd000001 7fffffff ffffffff ffffffff',
      'fd000001 80000000 00000000 00000000',
    ],
  ])('of the network %s', (text, first, last, beyond) => {
    expect(rangeOf(parseCidr(text) ?? ('' as Cidr))).toEqual({
      first: unhex(first),
      last: unhex(last),
      beyond: beyond === undefined ? undefined : unhex(beyond),
    });
  });
});
