import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isJunctionError } from '../../src/errors.ts';
import {
  MessageWriter,
  NLM_F_ACK,
  NLM_F_REQUEST,
  decodeErrno,
  decodeMessages,
} from '../../src/netlink/codec.ts';
import { decodeText, u16be, u32, u32be, u64be, u8 } from '../../src/netlink/kinds.ts';
import { decodeAttributes, decodeU32be, decodeU64be } from './support/attributes.ts';
import { decodeNfacct, getNfacct, newNfacct } from '../../src/netlink/nfacct.ts';
import type { NetlinkRequest } from '../../src/netlink/socket.ts';

const hex = (bytes: Uint8Array): string =>
  Buffer.from(bytes)
    .toString('hex')
    .replace(/(.{8})(?=.)/g, '$1 ');
const unhex = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text.replaceAll(/\s/g, ''), 'hex'));
const encode = ({ type, flags, payload }: NetlinkRequest): Uint8Array =>
  new MessageWriter(8)
    .message({ type, flags: flags | NLM_F_REQUEST | NLM_F_ACK, sequence: 1 }, payload)
    .finish();

function codeOf(act: () => unknown): unknown {
  try {
    act();
    return undefined;
  } catch (error) {
    return isJunctionError(error) ? error.code : error;
  }
}

/** For little-endian machines, which is where these tests run. */
describe('golden bytes', () => {
  it('nfacct add drops', () => {
    expect(hex(encode(newNfacct('drops')))).toBe(
      [
        '20000000 00070506 01000000 00000000', // 32 bytes, ACCT NEW, request ack excl create, sequence 1
        '00000000', //                            nfgenmsg: any family
        '0a000100 64726f70 73000000', //          NAME "drops", padded
      ].join(' '),
    );
  });

  it('nfacct get drops', () => {
    expect(hex(encode(getNfacct('drops')))).toBe(
      '20000000 01070500 01000000 00000000 00000000 0a000100 64726f70 73000000',
    );
  });

  it('the answer to nfacct get', () => {
    const payload = unhex(`00000000 0a000100 64726f70 73000000
      0c000200 00000000 00000003 0c000300 00000000 000000fc 08000400 00000001`);
    expect(decodeNfacct(payload)).toEqual({ name: 'drops', packets: 3n, bytes: 252n });
  });

  it('nested and numeric attributes', () => {
    const writer = new MessageWriter().message({ type: 0x0a00, flags: 1, sequence: 2 }, (message) =>
      message.nested(1, (inner) => {
        u8.write(inner, 1, 6);
        u16be.write(inner, 2, 80);
        u32be.write(inner, 3, 1);
        u32.write(inner, 4, 1);
        u64be.write(inner, 5, 2n);
      }),
    );
    expect(hex(writer.finish())).toBe(
      '40000000 000a0100 02000000 00000000 30000180 05000100 06000000 06000200 00500000 ' +
        '08000300 00000001 08000400 01000000 0c000500 00000000 00000002',
    );
  });
});

describe('what was written is read back', () => {
  const attribute = fc.record({
    type: fc.integer({ min: 1, max: 0x3fff }),
    value: fc.uint8Array({ maxLength: 300 }),
  });

  it('attributes of any length', () => {
    fc.assert(
      fc.property(
        fc.array(fc.array(attribute, { maxLength: 5 }), { minLength: 1, maxLength: 5 }),
        (messages) => {
          const writer = new MessageWriter(4);
          messages.forEach((attributes, sequence) =>
            writer.message({ type: 16, flags: 1, sequence }, (message) => {
              for (const { type, value } of attributes) message.attribute(type, value);
            }),
          );
          const read = decodeMessages(writer.finish()).map(({ payload }) => decodeAttributes(payload));
          expect(read).toEqual(messages);
        },
      ),
    );
  });
});

describe('bounds', () => {
  it('any bytes are either read or refused', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        for (const decode of [decodeMessages, decodeAttributes]) {
          expect(codeOf(() => decode(bytes))).toBeOneOf([undefined, 'NETLINK_MALFORMED']);
        }
      }),
    );
  });

  it.each([
    [
      'a message longer than the datagram',
      () => decodeMessages(unhex('18000000 02000000 00000000 00000000')),
    ],
    ['a message shorter than its header', () => decodeMessages(unhex('08000000 02000000 00000000 00000000'))],
    ['an attribute longer than its message', () => decodeAttributes(unhex('09000100 00000000'))],
    ['an attribute shorter than its header', () => decodeAttributes(unhex('03000100'))],
    ['a stub of an attribute', () => decodeAttributes(unhex('0400'))],
    ['a short error', () => decodeErrno(unhex('0000'))],
    ['a short number', () => decodeU32be(unhex('000000'))],
    ['a short big number', () => decodeU64be(unhex('00000000'))],
    [
      'an attribute that is too long to write',
      () => new MessageWriter().attribute(1, new Uint8Array(0x10000)),
    ],
  ])('%s', (_, act) => {
    expect(act).toThrow(expect.objectContaining({ code: 'NETLINK_MALFORMED' }));
  });

  it('the last attribute may lack its padding', () => {
    expect(decodeAttributes(unhex('0500010041'))).toHaveLength(1);
  });

  it('a string may lack its end', () => expect(decodeText(unhex('4142'))).toBe('AB'));
});
