/** Messages and attributes: there and back, their bounds, and what is refused or passed over. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isJunctionError } from '../../src/errors.ts';
import { type Cidr, type Ip, parseCidr, parseIp } from '../../src/model/ip.ts';
import { MessageWriter, decodeErrno, decodeMessages } from '../../src/netlink/codec.ts';
import { decodeFlow } from '../../src/netlink/conntrack.ts';
import { type IpsetEntry, type IpsetType, writeEntry } from '../../src/netlink/ipset.ts';
import { decodeDestination, decodeService } from '../../src/netlink/ipvs.ts';
import { u16be, u32, u32be, u64be, u8 } from '../../src/netlink/kinds.ts';
import { decodeAddress } from '../../src/netlink/rtnetlink.ts';
import { requestHex, unhex } from '../system/support/bytes.ts';
import { decodeAttributes } from './support/attributes.ts';
import { FLOW } from './support/golden.ts';
import { decodeEntry, decodeIpset } from './support/readers.ts';

const ip = (text: string): Ip => parseIp(text) ?? ('' as Ip);
const net = (text: string): Cidr => parseCidr(text) ?? ('' as Cidr);

function codeOf(act: () => unknown): unknown {
  try {
    act();
    return undefined;
  } catch (error) {
    return isJunctionError(error) ? error.code : error;
  }
}

it('nested and numeric attributes, in bytes', () => {
  const payload = (writer: MessageWriter): MessageWriter =>
    writer.nested(1, (inner) => {
      u8.write(inner, 1, 6);
      u16be.write(inner, 2, 80);
      u32be.write(inner, 3, 1);
      u32.write(inner, 4, 1);
      u64be.write(inner, 5, 2n);
    });
  expect(requestHex({ type: 0x0a00, flags: 1, payload })).toBe(
    '40000000 000a0100 01000000 00000000 30000180 05000100 06000000 06000200 00500000 ' +
      '08000300 00000001 08000400 01000000 0c000500 00000000 00000002',
  );
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

  it('entries of every type of set', () => {
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
  it('any bytes are either read or refused', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        for (const decode of [decodeMessages, decodeAttributes]) {
          expect(codeOf(() => decode(bytes))).toBeOneOf([undefined, 'NETLINK_MALFORMED']);
        }
      }),
    );
  });

  const address = '0c000180 08000140 0a000001';
  const entry = (type: IpsetType, text: string) => () => decodeEntry(type, unhex(text));
  const SERVICE_KEY = `06000100 02000000 06000200 06000000
    14000300 0a000001 00000000 00000000 00000000 06000400 00500000`;

  it.each<[what: string, act: () => unknown]>([
    [
      'a message longer than the datagram',
      () => decodeMessages(unhex('18000000 02000000 00000000 00000000')),
    ],
    ['an attribute longer than its message', () => decodeAttributes(unhex('09000100 00000000'))],
    ['a stub of an attribute', () => decodeAttributes(unhex('0400'))],
    ['a short error', () => decodeErrno(unhex('0000'))],
    [
      'an attribute that is too long to write',
      () => new MessageWriter().attribute(1, new Uint8Array(0x10000)),
    ],
    ['an entry with an address of neither family', entry('hash:ip', '0c000180 08000340 0a000001')],
    [
      'an entry with a protocol of no service',
      entry('hash:ip,port', `${address} 06000440 00500000 05000700 01000000`),
    ],
    [
      'an entry with a prefix that is too long',
      entry(
        'hash:ip,port,net',
        `${address} 06000440 00500000 05000700 06000000 0c001480 08000140 c0000200 05001500 21000000`,
      ),
    ],
    ['an entry with a port of four bytes', entry('bitmap:port', '08000440 00000050')],
    ['entries before their set', () => decodeIpset([{ payload: unhex('02000000 06000200 41000000') }])],
    ['a virtual server without a scheduler', () => decodeService(unhex(`01010000 30000180 ${SERVICE_KEY}`))],
    [
      'a netmask with holes',
      () =>
        decodeService(
          unhex(`01010000 54000180 ${SERVICE_KEY} 07000600 72720000 0c000700 03000000 ffffffff
            08000800 302a0000 08000900 ff00ff00`),
        ),
    ],
    [
      'a real server of no family',
      () =>
        decodeDestination(
          unhex(`05010000 2c000280 14000100 0a010001 00000000 00000000 00000000
            06000200 1f900000 08000700 02000000 08000800 05000000`),
        ),
    ],
  ])('%s is refused', (_, act) => {
    expect(act).toThrow(expect.objectContaining({ code: 'NETLINK_MALFORMED' }));
  });

  it.each([
    ['an address of another family', decodeAddress(unhex('2d080000 01000000 05000200 08000000'))],
    ['a flow in a zone', decodeFlow(unhex(`${FLOW} 06001200 00070000`))],
    [
      'a virtual server for a firewall mark',
      decodeService(
        unhex(`01010000 38000180 06000100 02000000 08000500 07000000
          07000600 72720000 0c000700 03000000 ffffffff 08000800 302a0000 08000900 ffffffff`),
      ),
    ],
  ])('%s is not ours to read', (_, read) => expect(read).toBeUndefined());

  it('the last attribute may lack its padding', () => {
    expect(decodeAttributes(unhex('0500010041'))).toHaveLength(1);
  });
});
